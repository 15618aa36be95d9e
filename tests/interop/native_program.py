"""A pure MindSpore program, in MindSpore's own words: its functional tutorial, an MLP, graph mode, mint; it prints all."""

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

x, y = ops.ones(5, ms.float32), ops.zeros(3, ms.float32)
rng = np.random.default_rng(0)
w = ms.Parameter(ms.Tensor(rng.standard_normal((5, 3)), ms.float32), name="w")
b = ms.Parameter(ms.Tensor(rng.standard_normal(3), ms.float32), name="b")


def function(x, y, w, b):
    z = ops.matmul(x, w) + b
    return ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z))


def function_with_logits(x, y, w, b):
    z = ops.matmul(x, w) + b
    return ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z)), z


def function_stop_gradient(x, y, w, b):
    z = ops.matmul(x, w) + b
    return ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z)), ops.stop_gradient(z)


def show(name, value):
    values = value if isinstance(value, (tuple, list)) else [value]
    for v in values:
        if isinstance(v, (tuple, list)):
            show(name, v)
        else:
            print(name, type(v).__module__, type(v).__name__, v.dtype, v.asnumpy().tolist())


plain = ms.grad(function, (2, 3))(x, y, w, b)
summed = ms.grad(function_with_logits, (2, 3))(x, y, w, b)
np.testing.assert_allclose(summed[0].asnumpy() - plain[0].asnumpy(), 1, rtol=1e-6)
assert all((row == plain[1].asnumpy()).all() for row in plain[0].asnumpy())
show("plain", plain)
show("summed", summed)
show("stopped", ms.grad(function_stop_gradient, (2, 3))(x, y, w, b))
show("aux", ms.grad(function_with_logits, (2, 3), has_aux=True)(x, y, w, b))
show("vjp", ms.vjp(function, x, y, w, b)[1](ms.Tensor(1.0, ms.float32)))


def square(a):
    return a * a


def cell_loss(x, y):
    return loss_fn(model(x), y)


show("jvp", ms.jvp(square, x, x))


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w, self.b = w, b

    def construct(self, x):
        return ops.matmul(x, self.w) + self.b


model = Network()
loss_fn = nn.BCEWithLogitsLoss()
show("cell", ms.value_and_grad(cell_loss, None, weights=model.trainable_params())(x, y))


class MLP(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        sizes = [784, 512, 512, 10]
        layers = []
        for n, m in zip(sizes, sizes[1:]):
            weight = ms.Tensor(rng.uniform(-1, 1, (m, n)) / np.sqrt(n), ms.float32)
            layers += [nn.Dense(n, m, weight, ms.Tensor(np.zeros(m), ms.float32)), nn.ReLU()]
        self.layers = nn.SequentialCell(layers[:-1])

    def construct(self, x):
        return self.layers(self.flatten(x))


def train():
    net = MLP()
    criterion, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 1e-2)

    def forward_fn(data, label):
        logits = net(data)
        return criterion(logits, label), logits

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
    for _ in range(3):
        data = ms.Tensor(rng.standard_normal((64, 28, 28)), ms.float32)
        label = ms.Tensor(rng.integers(0, 10, 64), ms.int32)
        (loss, _), grads = grad_fn(data, label)
        optimizer(grads)
        show("loss", loss)
    return net, data, label


net, data, label = train()


@ms.jit
def compiled(a):
    return ops.relu(ops.matmul(a, a.T)).sum() + mint.sum(mint.abs(a))


show("jit", compiled(ops.ones((3, 2), ms.float32)))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
show("step", step(data, label))
ms.set_context(mode=ms.GRAPH_MODE)
show("graph", [net(data)[0], step(data, label)])
print(ms.get_context("mode"))
for cls in (ms.Tensor, ms.Parameter, nn.Cell):
    print(cls.__name__, *sorted(dir(cls)))
print(isinstance(ops.relu, type(train)), ops.relu.__name__, ops.relu.__module__, callable(ops.ReLU()))
