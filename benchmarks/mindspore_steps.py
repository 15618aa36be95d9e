"""The five training steps written by hand for MindSpore, twice.

tuned    one flat function over arrays made of the fastest primitives, one `value_and_grad` of it, fused optimizers over
         flat memory, and the adapter's runtime settings (synchronous PyNative mode, instruction set, log level)
default  Cells, losses and optimizers of `mindspore.nn` in MindSpore's own settings, in its functional style

Shapes, optimizers and the scale of the initial weights are those of workloads.py.
"""
import mindspore as ms
import numpy as np


def make(side, name):
    """A function that does one training step and returns the loss."""
    ms.set_seed(0)
    return tuned(name) if side == "tuned" else default(name)


# ---------------------------------------------------------------- tuned
class Primitives:
    """The primitives in use, each made once."""

    def __init__(self):
        P = ms.ops.operations
        self.matmul_t = P.MatMul(transpose_b=True)
        self.bmm, self.bmm_t = P.BatchMatMul(), P.BatchMatMul(transpose_b=True)
        self.bias, self.relu, self.add, self.mul, self.erf = P.BiasAdd(), P.ReLU(), P.Add(), P.Mul(), P.Erf()
        self.reshape, self.transpose, self.gather, self.concat = P.Reshape(), P.Transpose(), P.Gather(), P.Concat(0)
        self.softmax, self.mean, self.pool = P.Softmax(-1), P.ReduceMean(), P.MaxPool(2, 2, "valid")
        self.layernorm, self.split3 = P.LayerNorm(1, 1, 1e-5), P.Split(1, 3)
        self.xent = P.SparseSoftmaxCrossEntropyWithLogits()
        self.batchnorm = P.BatchNorm(is_training=True, epsilon=1e-5, momentum=0.1)
        self.make_conv, self.make_lstm = P.Conv2D, P.LSTM

    def linear(self, x, w, b):
        return self.bias(self.matmul_t(x, w), b)     # a broadcast Add of the bias costs ten times as much


class Parameters(dict):
    """NumPy parameters by name, initialised at the scale of PyTorch's layers."""

    def __init__(self):
        super().__init__()
        self.random = np.random.RandomState(0)

    def uniform(self, name, *shape, fan_in=None):
        bound = 1 / np.sqrt(fan_in or np.prod(shape[1:]))
        self[name] = self.random.uniform(-bound, bound, shape).astype(np.float32)

    def linear(self, name, out, inp, bias=True):
        self.uniform(name + ".w", out, inp)
        if bias:
            self.uniform(name + ".b", out, fan_in=inp)

    def norm(self, name, size):
        self[name + ".w"], self[name + ".b"] = np.ones(size, np.float32), np.zeros(size, np.float32)

    def table(self, name, *shape):
        self[name] = self.random.randn(*shape).astype(np.float32)


def tuned_mlp(p, o):
    p.linear("1", 512, 784), p.linear("2", 512, 512), p.linear("3", 10, 512)

    def forward(x, y, w1, b1, w2, b2, w3, b3):
        x = o.relu(o.linear(x, w1, b1))
        x = o.relu(o.linear(x, w2, b2))
        return o.xent(o.linear(x, w3, b3), y)
    return forward, floats(p, 64, 784), labels(p, 10, 64)


def tuned_lenet(p, o):
    p.uniform("c1.w", 6, 1, 5, 5), p.uniform("c1.b", 6, fan_in=25)
    p.uniform("c2.w", 16, 6, 5, 5), p.uniform("c2.b", 16, fan_in=150)
    p.linear("1", 120, 400), p.linear("2", 84, 120), p.linear("3", 10, 84)
    conv1, conv2 = o.make_conv(6, 5, pad_mode="pad", pad=2), o.make_conv(16, 5)

    def forward(x, y, c1, d1, c2, d2, w1, b1, w2, b2, w3, b3):
        x = o.pool(o.relu(o.bias(conv1(x, c1), d1)))
        x = o.pool(o.relu(o.bias(conv2(x, c2), d2)))
        x = o.relu(o.linear(o.reshape(x, (64, 400)), w1, b1))
        return o.xent(o.linear(o.relu(o.linear(x, w2, b2)), w3, b3), y)
    return forward, floats(p, 64, 1, 28, 28), labels(p, 10, 64)


def tuned_resnet(p, o):
    running = {c: (ms.Tensor(np.zeros(c, np.float32)), ms.Tensor(np.ones(c, np.float32))) for c in (16, 32, 64)}
    convs = []

    def add(out, inp, kernel, stride, pad):
        p.uniform(f"c{len(convs)}", out, inp, kernel, kernel)
        p.norm(f"n{len(convs)}", out)
        convs.append((o.make_conv(out, kernel, pad_mode="pad", pad=pad, stride=stride), out))

    blocks = ((16, 16, 1), (16, 32, 2), (32, 64, 2))
    add(16, 3, 3, 1, 1)
    for inp, out, stride in blocks:
        add(out, inp, 3, stride, 1), add(out, out, 3, 1, 1)
        if inp != out:
            add(out, inp, 1, stride, 0)
    p.linear("fc", 10, 64)

    def forward(x, y, *w):
        layers = iter([(conv, running[c], *w[3 * i:3 * i + 3]) for i, (conv, c) in enumerate(convs)])

        def conv_bn(x):
            conv, (mean, var), kernel, gain, bias = next(layers)
            return o.batchnorm(conv(x, kernel), gain, bias, mean, var)[0]
        x = o.relu(conv_bn(x))
        for inp, out, _ in blocks:
            z = conv_bn(o.relu(conv_bn(x)))
            x = o.relu(o.add(z, conv_bn(x) if inp != out else x))
        return o.xent(o.linear(o.mean(x, (2, 3)), w[-2], w[-1]), y)
    return forward, floats(p, 32, 3, 32, 32), labels(p, 10, 32)


def tuned_gpt(p, o):
    B, T, C, H, V = 4, 64, 128, 4, 256
    p.table("token", V, C), p.table("position", T, C)
    for i in range(4):
        p.norm(f"{i}.ln1", C), p.linear(f"{i}.qkv", 3 * C, C), p.linear(f"{i}.proj", C, C)
        p.norm(f"{i}.ln2", C), p.linear(f"{i}.up", 4 * C, C), p.linear(f"{i}.down", C, 4 * C)
    p.norm("ln", C), p.linear("head", V, C, bias=False)
    mask = ms.Tensor(np.triu(np.full((T, T), -1e9, np.float32), 1))

    def heads(t):
        return o.transpose(o.reshape(t, (B, T, H, C // H)), (0, 2, 1, 3))

    def forward(x, y, token, position, *w):
        h = o.reshape(o.add(o.reshape(o.gather(token, x, 0), (B, T, C)), position), (B * T, C))
        for i in range(4):
            g1, h1, wqkv, bqkv, wo, bo, g2, h2, wu, bu, wd, bd = w[12 * i:12 * i + 12]
            q, k, v = (heads(t) for t in o.split3(o.linear(o.layernorm(h, g1, h1)[0], wqkv, bqkv)))
            s = o.softmax(o.add(o.mul(o.bmm_t(q, k), (C // H) ** -0.5), mask))
            a = o.reshape(o.transpose(o.bmm(s, v), (0, 2, 1, 3)), (B * T, C))
            h = o.add(h, o.linear(a, wo, bo))
            u = o.linear(o.layernorm(h, g2, h2)[0], wu, bu)
            u = o.mul(o.mul(u, 0.5), o.add(o.erf(o.mul(u, 0.5 ** 0.5)), 1.0))
            h = o.add(h, o.linear(u, wd, bd))
        return o.xent(o.matmul_t(o.layernorm(h, w[48], w[49])[0], w[50]), y)
    return forward, labels(p, V, B * T), labels(p, V, B * T)


def tuned_lstm(p, o):
    T, B, E, H, V = 32, 16, 64, 128, 64
    p.table("embedding", V, E)
    p.uniform("wih", 4 * H, E, fan_in=H), p.uniform("whh", 4 * H, H, fan_in=H)
    p.uniform("bih", 4 * H, fan_in=H), p.uniform("bhh", 4 * H, fan_in=H)
    p.linear("head", V, H)
    cell = o.make_lstm(E, H, 1, True, False, 0.0)
    zero = ms.Tensor(np.zeros((1, B, H), np.float32))

    def forward(x, y, embedding, wih, whh, bih, bhh, w, b):
        e = o.reshape(o.gather(embedding, x, 0), (T, B, E))          # time first
        weights = o.concat((o.reshape(wih, (-1,)), o.reshape(whh, (-1,)), o.add(bih, bhh)))
        out = cell(e, zero, zero, o.reshape(weights, (-1, 1, 1)))[0]
        return o.xent(o.linear(o.reshape(out, (T * B, H)), w, b), y)
    return forward, labels(p, V, T * B), labels(p, V, T * B)


TUNED = {"mlp": (tuned_mlp, "sgd", 0.01), "lenet": (tuned_lenet, "sgd", 0.01), "resnet": (tuned_resnet, "sgd", 0.01),
         "gpt": (tuned_gpt, "adam", 3e-4), "lstm": (tuned_lstm, "adam", 1e-3)}


def floats(p, *shape):
    return ms.Tensor(p.random.randn(*shape).astype(np.float32))


def labels(p, below, *shape):
    return ms.Tensor(p.random.randint(0, below, shape).astype(np.int32))


class FlatOptimizer:
    """One fused kernel over all parameters, which are views of one piece of memory that MindSpore and NumPy share."""

    def __init__(self, kind, lr, parameters):
        P = ms.ops.operations
        size = sum(a.size for a in parameters.values())
        flat = [np.zeros(size, np.float32) for _ in range(4)]
        self.tensors, at = [], 0
        for a in parameters.values():
            flat[0][at:at + a.size] = a.ravel()
            self.tensors.append(ms.Tensor.from_numpy(flat[0][at:at + a.size].reshape(a.shape)))
            at += a.size
        self.flat_grad = flat[1]
        self.param, self.grad, self.first, self.second = map(ms.Tensor.from_numpy, flat)
        self.kind, self.lr, self.t = kind, lr, 0
        self.momentum, self.adam = P.ApplyMomentum(), P.Adam()
        self.zero, self.beta1, self.beta2, self.rate = map(self.scalar, (0, 0.9, 0.999, lr))

    @staticmethod
    def scalar(x):
        return ms.Tensor.from_numpy(np.asarray(x, np.float32))

    def step(self, grads):
        np.concatenate([g.asnumpy().ravel() for g in grads], out=self.flat_grad)
        if self.kind == "sgd":
            self.momentum(self.param, self.first, self.rate, self.grad, self.beta1)
            return
        # Beta powers of zero keep the kernel from correcting the bias itself, which it does in single precision and
        # with epsilon on the wrong side; the corrected rate and epsilon say the same.
        self.t += 1
        c = (1 - 0.999 ** self.t) ** 0.5
        rate, eps = self.scalar(self.lr * c / (1 - 0.9 ** self.t)), self.scalar(1e-8 * c)
        self.adam(self.param, self.first, self.second, self.zero, self.zero, rate, self.beta1, self.beta2, eps,
                  self.grad)


def tuned(name):
    build, kind, lr = TUNED[name]
    parameters = Parameters()
    forward, x, y = build(parameters, Primitives())
    optimizer = FlatOptimizer(kind, lr, parameters)
    both = ms.value_and_grad(forward, tuple(range(2, 2 + len(parameters))))

    def step():
        loss, grads = both(x, y, *optimizer.tensors)
        optimizer.step(grads)
        return float(loss.asnumpy())
    return step


# ---------------------------------------------------------------- default
def default_nets():
    nn, ops = ms.nn, ms.ops

    class LeNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
            self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
            self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
            self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

        def construct(self, x):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.flatten(self.pool(self.relu(self.conv2(x))))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))

    def conv(inp, out, kernel, stride):
        return nn.Conv2d(inp, out, kernel, stride=stride, pad_mode="pad", padding=kernel // 2)

    class Block(nn.Cell):
        def __init__(self, inp, out, stride):
            super().__init__()
            self.conv1, self.bn1 = conv(inp, out, 3, stride), nn.BatchNorm2d(out)
            self.conv2, self.bn2 = conv(out, out, 3, 1), nn.BatchNorm2d(out)
            self.shortcut = None
            if inp != out:
                self.shortcut = nn.SequentialCell(conv(inp, out, 1, stride), nn.BatchNorm2d(out))
            self.relu = nn.ReLU()

        def construct(self, x):
            z = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(z + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem = nn.SequentialCell(conv(3, 16, 3, 1), nn.BatchNorm2d(16), nn.ReLU())
            self.blocks = nn.SequentialCell(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
            self.fc = nn.Dense(64, 10)

        def construct(self, x):
            return self.fc(self.blocks(self.stem(x)).mean((2, 3)))

    class Layer(nn.Cell):
        def __init__(self, C, H):
            super().__init__()
            self.H = H
            self.ln1, self.ln2 = nn.LayerNorm((C,), epsilon=1e-5), nn.LayerNorm((C,), epsilon=1e-5)
            self.qkv, self.proj = nn.Dense(C, 3 * C), nn.Dense(C, C)
            self.up, self.down, self.gelu = nn.Dense(C, 4 * C), nn.Dense(4 * C, C), nn.GELU(approximate=False)

        def construct(self, x, mask):
            B, T, C = x.shape
            q, k, v = (t.reshape(B, T, self.H, C // self.H).transpose(0, 2, 1, 3)
                       for t in ops.split(self.qkv(self.ln1(x)), C, axis=2))
            s = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) * (C // self.H) ** -0.5 + mask, axis=-1)
            x = x + self.proj(ops.matmul(s, v).transpose(0, 2, 1, 3).reshape(B, T, C))
            return x + self.down(self.gelu(self.up(self.ln2(x))))

    class GPT(nn.Cell):
        def __init__(self):
            super().__init__()
            normal = ms.common.initializer.Normal(1.0)
            self.token = nn.Embedding(256, 128, embedding_table=normal)
            self.position = nn.Embedding(64, 128, embedding_table=normal)
            self.layers = nn.CellList([Layer(128, 4) for _ in range(4)])
            self.ln, self.head = nn.LayerNorm((128,), epsilon=1e-5), nn.Dense(128, 256, has_bias=False)
            self.mask = ms.Tensor(np.triu(np.full((64, 64), -1e9, np.float32), 1))

        def construct(self, x):
            h = self.token(x) + self.position(ops.arange(x.shape[1]))
            for layer in self.layers:
                h = layer(h, self.mask)
            return self.head(self.ln(h)).reshape(-1, 256)

    class CharLSTM(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(64, 64, embedding_table=ms.common.initializer.Normal(1.0))
            self.lstm, self.head = nn.LSTM(64, 128, batch_first=True), nn.Dense(128, 64)

        def construct(self, x):
            return self.head(self.lstm(self.embedding(x))[0]).reshape(-1, 64)

    def mlp():
        return nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))

    p = Parameters()
    return {
        "mlp": (mlp, lambda: (floats(p, 64, 784), labels(p, 10, 64))),
        "lenet": (LeNet, lambda: (floats(p, 64, 1, 28, 28), labels(p, 10, 64))),
        "resnet": (ResNet, lambda: (floats(p, 32, 3, 32, 32), labels(p, 10, 32))),
        "gpt": (GPT, lambda: (labels(p, 256, 4, 64), labels(p, 256, 256))),
        "lstm": (CharLSTM, lambda: (labels(p, 64, 16, 32), labels(p, 64, 512))),
    }


def default(name):
    net, data = default_nets()[name]
    net, (x, y) = net(), data()
    net.set_train()
    criterion = ms.nn.CrossEntropyLoss()
    _, kind, lr = TUNED[name]
    if kind == "sgd":
        optimizer = ms.nn.Momentum(net.trainable_params(), lr, 0.9)
    else:
        optimizer = ms.nn.Adam(net.trainable_params(), lr)
    grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)

    def step():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return float(loss.asnumpy())
    return step
