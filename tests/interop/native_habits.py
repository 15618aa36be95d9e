"""What pure MindSpore programs do beside computing: copies, pickles, signatures, methods, subclasses, compiled methods; it prints all."""

import copy
import inspect
import pickle

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

ms.set_seed(0)


def show(name, make):
    try:
        print(name, make())
    except Exception as error:
        print(name, type(error).__name__, str(error).partition("\n")[0])


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.activation = ops.relu
        self.primitive = ops.ReLU()
        self.absolute = mint.abs
        self.dense = nn.Dense(2, 2, "ones")

    def construct(self, x):
        return self.absolute(self.primitive(self.activation(self.dense(x))))


x = ms.Tensor(np.ones((1, 2), np.float32))
show("deepcopy of a Cell", lambda: copy.deepcopy(Block())(x))
show("copies of functions", lambda: [copy.copy(f) is f and copy.deepcopy(f) is f for f in (ops.relu, mint.abs, ms.value_and_grad)])
show("pickles of functions", lambda: [pickle.loads(pickle.dumps(f)) is f for f in (ops.relu, ms.numpy.abs, ms.value_and_grad)])
show("pickle of a method", lambda: pickle.loads(pickle.dumps(x.add))(x))
show("pickles", lambda: [pickle.loads(pickle.dumps(t)) for t in (ms.Tensor([1.0]), ms.Parameter(ms.Tensor([1.0]), name="w"))])
show("deepcopy of a Parameter", lambda: copy.deepcopy(ms.Parameter(ms.Tensor([1.0]), name="w")))
show("signatures", lambda: [str(inspect.signature(f)) for f in (ops.relu, ms.value_and_grad, nn.Cell.__call__, ms.Parameter.__init__)])
show("kinds", lambda: [inspect.isfunction(ops.relu), inspect.isroutine(x.add), inspect.ismethod(x.astype), callable(ops.ReLU())])
show("names", lambda: [ops.relu.__name__, ops.relu.__qualname__, x.add.__name__, len(ops.relu.__doc__), nn.Cell.__call__.__name__])
show("unbound methods", lambda: [ms.Tensor.add(x, x), *map(ms.Tensor.abs, [-x])])
show("comparisons", lambda: [x == None, x != "a", x == 1, [1] == x, x in [None], 1 in x, hash(x) == hash(x)])  # noqa: E711
show("arithmetic", lambda: [x + 1, 1 - x, x / 2, x % 2, x**2, -x, x @ x.T, x > 0, ~(x > 0), x // 3, divmod(7, 2)])
show("indices", lambda: [x[0], x[0, 1], x[..., None], x[ms.Tensor([0])], x[x > 0], x[:, [1, 0]]])


class Wrapped(Block):
    def __call__(self, *args):
        return super().__call__(*args) * 2


class Keep(nn.Optimizer):
    def __init__(self, params):
        super().__init__(0.1, params)

    def construct(self, gradients):
        return gradients


class Logged(ms.Parameter):
    pass


show("super().__call__", lambda: Wrapped()(x))
show("an optimizer of one's own", lambda: Keep(Block().trainable_params())((x,)))
show("ParameterTuple", lambda: [p.name for p in ms.ParameterTuple(Block().trainable_params())])
show("ParameterTuple of others", lambda: ms.ParameterTuple([1]))
show("Parameter of others", lambda: ms.Parameter("text"))
show("Tensor of others", lambda: ms.Tensor(object()))
show("Tensors", lambda: [ms.Tensor([1, 2]), ms.Tensor(1.5), ms.Tensor(np.ones(2)), ms.Tensor([[True]]), ms.Tensor(x, ms.float16)])


class Compiled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 3, "ones")

    @ms.jit
    def construct(self, x):
        return self.dense(x)

    @ms.jit(capture_mode="ast")
    def other(self, x):
        return self.dense(x) * 2


@ms.jit
class CompiledClass(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2, "ones")

    def construct(self, x):
        return self.dense(x)


@ms.jit_class
class Helper:
    def double(self, x):
        return x * 2


helper, compiled = Helper(), Compiled()


def squares(x):
    return (x * x).sum()


def of_compiled(x):
    return compiled(x).sum()


@ms.jit
def methods(x):
    y = x.add(x).mul(2).reshape(-1)
    return helper.double(y[0:1]) + x.sum() + (x > 0).astype(ms.float32).sum() + x.T.abs().max()


@ms.jit
def gradients(x):
    return ms.grad(squares)(x), ms.value_and_grad(squares)(x)


@ms.jit
def made(x):
    x[0] = 5.0
    return x + ms.Tensor([1.0, 2.0], ms.float32) + ops.ones((2,), ms.float32)


@ms.jit(capture_mode="trace")
def traced(x):
    return x + 1


def hooked(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    return y * y


class Own(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 100,)


def everything():
    show("compiled construct", lambda: compiled(x))
    show("compiled method", lambda: compiled.other(x))
    show("compiled class", lambda: CompiledClass()(x))
    show("gradient of what is compiled", lambda: ms.grad(of_compiled)(x))
    show("methods", lambda: methods(x))
    show("gradients", lambda: gradients(x))
    show("made", lambda: made(ms.Tensor([3.0, 4.0])))
    show("of a vmap", lambda: ms.jit(ms.vmap(squares))(ms.Tensor(np.ones((2, 2), np.float32))))
    show("bprop", lambda: ms.grad(Own())(x))
    show("grad", lambda: ms.grad(squares)(x))
    show("kinds", lambda: [type(ms.jit(squares)).__name__, type(ms.jit(Block())).__name__])


everything()
show("hook", lambda: ms.grad(hooked)(x))
ms.set_context(mode=ms.GRAPH_MODE)
everything()
ms.set_context(mode=ms.PYNATIVE_MODE)
show("traced", lambda: traced(x))
