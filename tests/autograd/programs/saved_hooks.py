# saved_tensors_hooks.

import torch
from programs_case import case
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

log = []


def pack(x):
    log.append(("pack", tuple(x.shape), x.requires_grad, x.is_leaf, torch.is_grad_enabled()))
    return x.numpy() if not x.requires_grad else x.detach().numpy()


def unpack(a):
    log.append(("unpack", a.shape))
    return torch.tensor(a)


x = torch.arange(1.0, 4, requires_grad=True)
w = torch.ones(3, 3, requires_grad=True)
with saved_tensors_hooks(pack, unpack):
    y = (x * x).exp()
    z = torch.tanh(y * 0.01) @ w
print(sorted(set(log)))
log.clear()
z.sum().backward()
print(x.grad, w.grad[0])
print(len(log) > 0, {l[0] for l in log})


def go(p, u, f=lambda x: x * x):
    x = torch.tensor([2.0], requires_grad=True)
    with saved_tensors_hooks(p, u):
        y = f(x)
    y.sum().backward()
    return x.grad


case("scale", lambda: go(lambda x: x * 4, lambda x: x))
case("scale exp", lambda: go(lambda x: x * 4, lambda x: x, torch.exp))
case("scale pow", lambda: go(lambda x: x * 4, lambda x: x, lambda x: x**3))
case("scale sig", lambda: go(lambda x: x * 4, lambda x: x, lambda x: x.sigmoid()))
case(
    "scale lin", lambda: go(lambda x: x * 4, lambda x: x, lambda x: torch.nn.functional.linear(x, torch.ones(1, 1) * 3))
)
case("unpack int", lambda: go(lambda x: x, lambda x: 3))
case("unpack none", lambda: go(lambda x: x, lambda x: None))
case("pack raises", lambda: go(lambda x: 1 / 0, lambda x: x))
case("unpack raises", lambda: go(lambda x: x, lambda x: 1 / 0))
case("pack inplace", lambda: go(lambda x: x.mul_(2), lambda x: x))
case("pack args", lambda: go(lambda: 3, lambda x: x))


def nest():
    x = torch.tensor([3.0], requires_grad=True)
    with saved_tensors_hooks(lambda x: x * 2, lambda x: x):
        with saved_tensors_hooks(lambda x: x * 5, lambda x: x):
            y = x * x
        z = x * x
    (y).sum().backward()
    g = x.grad.clone()
    x.grad = None
    z.sum().backward()
    return g, x.grad


case("nested", nest)


def dbl():
    x = torch.tensor([3.0], requires_grad=True)
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        y = x**3
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return torch.autograd.grad(g, x)


case("double", dbl)


def cpu():
    x = torch.tensor([3.0], requires_grad=True)
    with save_on_cpu():
        y = x**3 * x.exp()
    y.backward()
    return x.grad


case("cpu", cpu)


def dis():
    with disable_saved_tensors_hooks("nope"):
        with saved_tensors_hooks(lambda x: x, lambda x: x):
            pass


case("disabled", dis)


def dis2():
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        with disable_saved_tensors_hooks("nope2"):
            pass


case("disabled2", dis2)


def dis3():
    with disable_saved_tensors_hooks("a"):
        with disable_saved_tensors_hooks("b"):
            with saved_tensors_hooks(lambda x: x, lambda x: x):
                pass


case("disabled3", dis3)


def tw():
    x = torch.tensor([3.0], requires_grad=True)
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        y = x * x
    y.backward()
    y.backward()


case("twice", tw)


def mod():
    x = torch.tensor([3.0], requires_grad=True)
    a = x * 1
    with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        y = a * a
    a.mul_(2)
    y.backward()
    return x.grad


case("modified", mod)


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        o = x.exp()
        ctx.save_for_backward(x, o)
        return o

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * a + b


case("Function", lambda: go(lambda x: x * 10, lambda x: x, F.apply))
case("no grad input", lambda: (log.clear(), go(pack, unpack, lambda x: x * torch.tensor([5.0])), [l[:2] for l in log]))
case(
    "conv",
    lambda: go(
        lambda x: x * 2, lambda x: x, lambda x: torch.nn.functional.conv1d(x.reshape(1, 1, 1), torch.ones(1, 1, 1) * 3)
    ),
)
lin = torch.nn.Linear(3, 2)


def linm():
    X = torch.ones(4, 3)
    n = []
    with saved_tensors_hooks(lambda x: (n.append(tuple(x.shape)), x * 2)[1], lambda x: x):
        o = torch.relu(lin(X))
    o.sum().backward()
    r = lin.weight.grad.clone()
    lin.weight.grad = None
    return r / r.abs().max(), sorted(set(n))


torch.manual_seed(0)
case("linear mod", linm)
case("saved attr", lambda: (x * x).grad_fn._saved_self)
case("saved attr2", lambda: (x.exp()).grad_fn._saved_result.tolist())
case("raw saved", lambda: (x * x).grad_fn._raw_saved_self)
