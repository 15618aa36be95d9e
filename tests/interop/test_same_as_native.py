"""Every form of MindSpore's differentiation over torch tensors gives what it gives over MindSpore's: structure, dtypes, numbers.

Each case runs twice in the same process; the run over MindSpore's tensors is the reference.
"""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops


def numbers(*shape):
    return (np.arange(1, 1 + int(np.prod(shape))) / 7).astype(np.float32).reshape(shape)


class Side:
    """Tensors and parameters of one library."""

    def __init__(self, tensor, parameter):
        self.tensor = tensor
        self.x, self.y, self.rows = tensor(numbers(3)), tensor(numbers(3) * 2), tensor(numbers(2, 3))
        self.w = [parameter(numbers(3), "a"), parameter(numbers(3) * 2, "b")]

    def weighted(self, x):
        return (x * self.w[0] * self.w[1]).sum()

    def half_weighted(self, x):
        return (x * self.w[0]).sum()


SIDES = {
    "native": lambda: Side(ms.Tensor, lambda a, name: ms.Parameter(ms.Tensor(a), name=name)),
    "ours": lambda: Side(torch.tensor, lambda a, name: torch.nn.Parameter(torch.tensor(a))),
}


# MindSpore parses some of these, and wants them written out
def cube(x):
    return x * x * x


def square(x):
    return x * x


def cubes(x):
    return (x * x * x).sum()


def squares(x):
    return (x * x).sum()


def double(x):
    return x * 2


def product(x, y):
    return x * y


def mixed(x, y):
    return x * y + x * x


def several(x, y):
    return x * y, x * x + y, x - y


def loss_and_one(x, y):
    return (x * y).sum(), x + y


def loss_and_two(x, y):
    return (x * y).sum(), x + y, x * 2


def loss_and_tuple(x, y):
    return (x * y).sum(), (x + y, x * 2)


def product_and_sum(x, y):
    return x * y, x + y


def along_itself(x):
    return ms.jvp(square, x, x)[1].sum()


def pulled_by_itself(x):
    return ms.vjp(square, x)[1](x)[0].sum()


def through_value_and_grad(x):
    return ms.value_and_grad(cubes)(x)[1].sum()


def penalty(side):
    def loss(x):
        g = ms.grad(lambda z: (z * z * side.w[0]).sum())(x)
        return (g * g).sum()

    return ms.value_and_grad(loss, 0, side.w)(side.x)


def got(side, *asked, fn=None, position=0, weights=None):
    """The gradients with ids, and each that is asked for."""
    grads = ms.grad(fn or side.weighted, position, weights, return_ids=True)(side.x)
    return [ms.get_grad(grads, a) for a in asked]


def pulled(fn, inputs, cotangents, **options):
    value, pull, *aux = ms.vjp(fn, *inputs, **options)
    return value, pull(*cotangents), aux


CASES = {
    "value_and_grad": lambda s: ms.value_and_grad(cube)(s.x),
    "position 1": lambda s: ms.value_and_grad(mixed, 1)(s.x, s.y),
    "positions": lambda s: ms.value_and_grad(mixed, (0, 1))(s.x, s.y),
    "positions in another order": lambda s: ms.value_and_grad(mixed, (1, 0))(s.x, s.y),
    "a tuple of one position": lambda s: (ms.value_and_grad(mixed, (1,))(s.x, s.y), ms.grad(cube, (0,))(s.x)),
    "several outputs": lambda s: ms.value_and_grad(several, (0, 1))(s.x, s.y),
    "a list as output": lambda s: ms.value_and_grad(lambda x: [x * 2, x * 3])(s.x),
    "aux": lambda s: ms.value_and_grad(loss_and_one, (0, 1), has_aux=True)(s.x, s.y),
    "two aux": lambda s: ms.value_and_grad(loss_and_two, 0, has_aux=True)(s.x, s.y),
    "aux in a tuple": lambda s: ms.value_and_grad(loss_and_tuple, 0, has_aux=True)(s.x, s.y),
    "aux, a tuple of one position": lambda s: ms.value_and_grad(loss_and_one, (0,), has_aux=True)(s.x, s.y),
    "aux, an index": lambda s: ms.value_and_grad(lambda x: (squares(x), x.argmax()), has_aux=True)(s.x),
    "grad with aux": lambda s: ms.grad(loss_and_one, (0, 1), has_aux=True)(s.x, s.y),
    "grad with two aux": lambda s: ms.grad(loss_and_two, 0, has_aux=True)(s.x, s.y),
    "grad with aux in a tuple": lambda s: ms.grad(loss_and_tuple, 0, has_aux=True)(s.x, s.y),
    "weights, list": lambda s: ms.value_and_grad(s.weighted, None, s.w)(s.x),
    "weights, tuple": lambda s: ms.value_and_grad(s.weighted, None, tuple(s.w))(s.x),
    "weights, ParameterTuple": lambda s: ms.value_and_grad(s.weighted, None, ms.ParameterTuple(s.w))(s.x),
    "one weight": lambda s: ms.value_and_grad(s.weighted, None, s.w[0])(s.x),
    "a list of one weight": lambda s: ms.value_and_grad(s.weighted, None, s.w[:1])(s.x),
    "weights and position": lambda s: ms.value_and_grad(s.weighted, 0, s.w)(s.x),
    "weights and a tuple of one position": lambda s: ms.grad(s.weighted, (0,), s.w[:1])(s.x),
    "weights and positions": lambda s: ms.grad(lambda x, y: (x * y * s.w[0]).sum(), (0, 1), s.w)(s.x, s.y),
    "one weight and position": lambda s: ms.grad(s.weighted, 0, s.w[1])(s.x),
    "an unused weight": lambda s: ms.grad(s.half_weighted, None, s.w)(s.x),
    "weights and aux": lambda s: ms.value_and_grad(lambda x: (s.weighted(x), x * 2), None, s.w, has_aux=True)(s.x),
    "ids": lambda s: got(s, 0, s.w[0], s.w[1], weights=s.w),
    "ids of a position": lambda s: [got(s, 0), ms.grad(cubes, 0, return_ids=True)(s.x), ms.grad(cubes, (0,), return_ids=True)(s.x)],
    "ids of positions": lambda s: ms.grad(mixed, (0, 1), return_ids=True)(s.x, s.y),
    "ids of weights": lambda s: got(s, s.w[1], position=None, weights=s.w),
    "ids of one weight": lambda s: got(s, s.w[0], position=None, weights=s.w[0]),
    "second order": lambda s: ms.grad(ms.grad(cubes))(s.x),
    "third order": lambda s: ms.grad(ms.grad(ms.grad(lambda x: (x * x * x * x).sum())))(s.x),
    "second order in ops": lambda s: ops.grad(ops.grad(lambda x, y: (x * x * x * y).sum()), 1)(s.x, s.y),
    "mixed derivatives": lambda s: ms.grad(ms.grad(lambda x, y: (x * x * y * y).sum()), (0, 1))(s.x, s.y),
    "grad of value_and_grad": lambda s: ms.grad(through_value_and_grad)(s.x),
    "gradient penalty": penalty,
    "vjp": lambda s: pulled(cube, [s.x], [s.y]),
    "vjp, two inputs": lambda s: pulled(mixed, [s.x, s.y], [s.x]),
    "vjp, several outputs": lambda s: pulled(several, [s.x, s.y], [s.x, s.y, s.x * 3]),
    "vjp, cotangents in a tuple": lambda s: pulled(several, [s.x, s.y], [(s.x, s.y, s.x * 3)]),
    "vjp with aux": lambda s: pulled(product_and_sum, [s.x, s.y], [s.x], has_aux=True),
    "vjp with two aux": lambda s: pulled(loss_and_two, [s.x, s.y], [s.x[0]], has_aux=True),
    "vjp with weights": lambda s: pulled(lambda x: x * s.w[0] * s.w[1], [s.x], [s.y], weights=s.w),
    "vjp with a ParameterTuple": lambda s: pulled(lambda x: x * s.w[0], [s.x], [s.y], weights=ms.ParameterTuple(s.w)),
    "vjp with one weight": lambda s: pulled(lambda x: x * s.w[0] * s.w[1], [s.x], [s.y], weights=s.w[0]),
    "vjp in ops": lambda s: ops.vjp(cube, s.x)[1](s.y),
    "jvp": lambda s: ms.jvp(cube, s.x, s.y),
    "jvp, two inputs": lambda s: ms.jvp(mixed, (s.x, s.y), (s.y, s.x)),
    "jvp, several outputs": lambda s: ms.jvp(several, (s.x, s.y), (s.y, s.x)),
    "jvp with aux": lambda s: ms.jvp(product_and_sum, (s.x, s.y), (s.y, s.x), has_aux=True),
    "jvp in ops": lambda s: ops.jvp(cube, s.x, s.y),
    "grad of jvp": lambda s: ms.grad(along_itself)(s.x),
    "grad of vjp": lambda s: ms.grad(pulled_by_itself)(s.x),
    "jacrev": lambda s: ms.jacrev(cube)(s.x),
    "jacrev, positions": lambda s: ms.jacrev(mixed, (0, 1))(s.x, s.y),
    "jacrev, a tuple of one position": lambda s: ms.jacrev(mixed, (0,))(s.x, s.y),
    "jacrev, several outputs": lambda s: ms.jacrev(several, (0, 1))(s.x, s.y),
    "jacrev with aux": lambda s: ms.jacrev(product_and_sum, 0, has_aux=True)(s.x, s.y),
    "jacfwd": lambda s: ms.jacfwd(cube)(s.x),
    "jacfwd, positions": lambda s: ms.jacfwd(mixed, (0, 1))(s.x, s.y),
    "jacfwd, a tuple of one position": lambda s: ms.jacfwd(mixed, (0,))(s.x, s.y),
    "jacfwd, several outputs": lambda s: ms.jacfwd(several, (0, 1))(s.x, s.y),
    "jacfwd with aux": lambda s: ms.jacfwd(product_and_sum, 0, has_aux=True)(s.x, s.y),
    "hessian": lambda s: (ms.jacfwd(ms.jacrev(cubes))(s.x), ms.jacfwd(ms.grad(cubes))(s.x), ms.jacrev(ms.grad(cubes))(s.x)),
    "vmap": lambda s: ms.vmap(square)(s.rows),
    "vmap, one argument for all": lambda s: ms.vmap(product, in_axes=(0, None))(s.rows, s.x),
    "vmap, other axes": lambda s: ms.vmap(double, in_axes=1, out_axes=1)(s.rows),
    "gradients of rows": lambda s: (ms.vmap(ms.grad(squares))(s.rows), ms.vmap(ms.value_and_grad(squares))(s.rows)),
    "GradOperation": lambda s: ops.GradOperation()(mixed)(s.x, s.y),
    "GradOperation, all": lambda s: ops.GradOperation(get_all=True)(mixed)(s.x, s.y),
    "GradOperation, all of one": lambda s: ops.GradOperation(get_all=True)(cube)(s.x),
    "GradOperation, sensitivity": lambda s: ops.GradOperation(sens_param=True)(mixed)(s.x, s.y, s.x),
    "GradOperation, all, sensitivity": lambda s: ops.GradOperation(get_all=True, sens_param=True)(mixed)(s.x, s.y, s.x),
    "GradOperation, sensitivities": lambda s: ops.GradOperation(get_all=True, sens_param=True)(several)(s.x, s.y, (s.x, s.y, s.x)),
    "GradOperation, weights": lambda s: ops.GradOperation(get_by_list=True)(s.weighted, ms.ParameterTuple(s.w))(s.x),
    "GradOperation, all, weights": lambda s: ops.GradOperation(get_by_list=True, get_all=True)(
        s.weighted, ms.ParameterTuple(s.w))(s.x),
    "by keyword": lambda s: ms.value_and_grad(lambda x, y=1.0: (x * x * y).sum())(s.x, y=s.y),
    "with a number": lambda s: ms.value_and_grad(lambda x, k: (x * x * k).sum())(s.x, 3),
    "with a tuple": lambda s: ms.value_and_grad(lambda pair, z: (pair[0] * pair[1] * z).sum(), 1)((s.x, s.y), s.rows[0]),
    "with a dict": lambda s: ms.value_and_grad(lambda named, z: (named["a"] * z).sum(), 1)({"a": s.x}, s.y),
    "with integers": lambda s: ms.grad(lambda x, i: (x * i).sum(), (0, 1))(s.x, s.tensor(np.arange(3))),
    "double precision": lambda s: ms.value_and_grad(cube)(s.tensor(numbers(3).astype(np.float64))),
    "half precision": lambda s: ms.value_and_grad(double)(s.tensor(numbers(3).astype(np.float16))),
    "called twice": lambda s: [g := ms.grad(cube), g(s.x), g(s.rows)][1:],
    "as a decorator": lambda s: ms.value_and_grad(lambda x: (x * x).sum())(s.x),
    "stop_gradient": lambda s: ms.value_and_grad(lambda x: (x * ops.stop_gradient(x)).sum())(s.x),
    "a Cell": lambda s: ms.value_and_grad(lambda x: nn.ReLU()(x - 0.2).sum())(s.x),
    "clip_by_global_norm": lambda s: ops.clip_by_global_norm((s.x, s.rows), 1.0),
    "clip_by_value": lambda s: (ops.clip_by_value(s.x, 0.2, 0.3), ops.clip_by_value((s.x, s.rows), s.x[0], s.x[1])),
    "clip_by_norm": lambda s: ops.clip_by_norm(s.x, 0.5),
}


def plain(x, kind):
    """Lists, tuples and (dtype, array) of a result, whose tensors are all of one kind."""
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, *[plain(item, kind) for item in x]]
    if isinstance(x, (ms.Tensor, torch.Tensor)):
        assert isinstance(x, kind)
        return str(x.dtype).lower().replace("torch.", ""), x.asnumpy()
    return x


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            assert_same(one, other)
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    else:
        assert a == b


@pytest.mark.parametrize("name", CASES)
def test_the_same(name):
    native, ours = (plain(CASES[name](SIDES[side]()), kind) for side, kind in (("native", ms.Tensor), ("ours", torch.Tensor)))
    assert_same(native, ours)


def test_pull_may_be_called_again():
    _, pull = ms.vjp(cube, torch.tensor([1.0, 2.0]))
    assert pull(torch.ones(2))[0].tolist() == [3, 12] and pull(torch.tensor([1.0, 0.0]))[0].tolist() == [3, 0]


@pytest.mark.parametrize("arguments, error", [
    ({"grad_position": "a"}, TypeError), ({"grad_position": None}, ValueError), ({"grad_position": None, "weights": [3]}, Exception),
    ({"has_aux": True}, Exception), ({"grad_position": 3}, Exception)])
def test_what_mindspore_refuses_is_refused(arguments, error):
    for make in (ms.Tensor, torch.tensor):
        with pytest.raises(error):
            ms.grad(cube, **arguments)(make(numbers(3)))
