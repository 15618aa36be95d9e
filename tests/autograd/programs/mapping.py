# vmap, modules as functions, Functions inside transforms.
import torch
from programs_case import case
from torch.func import functional_call, grad, stack_module_state, vmap

x = torch.arange(6.0).reshape(2, 3)
m = torch.mul
case("no args", lambda: vmap(lambda: x)())
case("no tensors", lambda: vmap(lambda a: a, in_dims=0)(3))
case("all none", lambda: vmap(lambda a: a, in_dims=None)(x))
case("all none2", lambda: vmap(lambda a, b: a, in_dims=(None, None))(x, x))
case("in_dims type", lambda: vmap(m, in_dims="a")(x, x))
case("in_dims struct", lambda: vmap(m, in_dims=(0,))(x, x))
case("in_dims list", lambda: vmap(m, in_dims=[0, 0])(x, x))
case("in_dims float", lambda: vmap(m, in_dims=(0.0, 0))(x, x))
case("in_dims oob", lambda: vmap(m, in_dims=(0, 2))(x, x))
case("in_dims neg", lambda: vmap(m, in_dims=-1)(x, x))
case("in_dims neg oob", lambda: vmap(m, in_dims=-3)(x, x))
case("in_dims nontensor", lambda: vmap(lambda a, b: a, in_dims=(0, 0))(x, 3))
case("scalar tensor", lambda: vmap(lambda a: a)(torch.tensor(1.0)))
case("sizes", lambda: vmap(m)(x, torch.ones(3)))
case("out nontensor", lambda: vmap(lambda a: 1.0)(x))
case("out none", lambda: vmap(lambda a: None)(x))
case("out dict", lambda: vmap(lambda a: {"a": a})(x))
case("out list", lambda: vmap(lambda a: [a, a * 2])(x))
case("out_dims struct", lambda: vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x))
case("out_dims type", lambda: vmap(lambda a: a, out_dims="a")(x))
case("out_dims float", lambda: vmap(lambda a: a, out_dims=0.0)(x))
case("out_dims oob", lambda: vmap(lambda a: a, out_dims=2)(x))
case("out_dims neg", lambda: vmap(lambda a: a, out_dims=-1)(x))
case("out_dims none", lambda: vmap(lambda a: a, out_dims=None)(x))
case("out_dims none ok", lambda: vmap(lambda a: (a, torch.ones(2)), out_dims=(0, None))(x))
case("unbatched out", lambda: vmap(lambda a: torch.ones(2))(x))
case("unbatched out dims1", lambda: vmap(lambda a: torch.ones(2), out_dims=1)(x))
case("randomness", lambda: vmap(lambda a: a + torch.rand(()))(x))
case("randomness bad", lambda: vmap(lambda a: a, randomness="foo")(x))
case("item", lambda: vmap(lambda a: a.sum().item())(x))
case("if", lambda: vmap(lambda a: a if a.sum() > 0 else a)(x))
case("batch0", lambda: vmap(lambda a: a * 2)(torch.ones(0, 3)))
case("chunk0", lambda: vmap(lambda a: a * 2, chunk_size=0)(x))
case("chunk1", lambda: vmap(lambda a: a * 2, chunk_size=1)(x))
w = torch.zeros(3)
case("inplace captured", lambda: vmap(lambda a: w.add_(a))(x))
c = torch.zeros(())


def f(a):
    c.add_(1)
    return a


case("inplace counter", lambda: (vmap(f)(x), c))
case("inplace input", lambda: (vmap(lambda a: a.mul_(2))(y := x.clone()), y))
case("shape", lambda: vmap(lambda a: (print(a.shape, a.dim(), a.numel(), a), a)[1])(x))
case("nonzero", lambda: vmap(lambda a: a.nonzero())(x))
case("bool mask", lambda: vmap(lambda a: a[a > 0])(x))
case("out_dims tree", lambda: vmap(lambda a: {"p": a, "q": a.sum()}, out_dims={"p": 1, "q": 0})(x))
case("kwargs", lambda: vmap(lambda a, b: a * b)(x, b=x))
case("kwargs2", lambda: vmap(lambda a, b: a * b)(x, b=torch.ones(5)))
case("same", lambda: (torch.manual_seed(0), vmap(lambda a: torch.rand(3), randomness="same")(x), torch.rand(2)))
case(
    "different",
    lambda: (
        torch.manual_seed(0),
        vmap(lambda a: torch.rand(3) + torch.rand(3), randomness="different")(x),
        torch.rand(2),
    ),
)
case("different ref", lambda: (torch.manual_seed(0), torch.rand(2, 3) + torch.rand(2, 3), torch.rand(2)))
case(
    "dropout different",
    lambda: (
        torch.manual_seed(0),
        vmap(lambda a: torch.dropout(a + 1, 0.5, True), randomness="different")(x),
        torch.rand(2),
    ),
)
case(
    "dropout same",
    lambda: (
        torch.manual_seed(0),
        vmap(lambda a: torch.dropout(a + 1, 0.5, True), randomness="same")(x),
        torch.rand(2),
    ),
)
case("dropout ref", lambda: (torch.manual_seed(0), torch.dropout(x + 1, 0.5, True), torch.rand(2)))
case("bernoulli_ captured diff", lambda: vmap(lambda a: torch.zeros(3).bernoulli_(0.5), randomness="different")(x))
case("bernoulli_ batched same", lambda: vmap(lambda a: a.clone().bernoulli_(0.5), randomness="same")(x))
case("randperm diff", lambda: (torch.manual_seed(0), vmap(lambda a: torch.randperm(4), randomness="different")(x)))
case("randn_like same", lambda: (torch.manual_seed(0), vmap(lambda a: torch.randn_like(a), randomness="same")(x)))
case("randn_like diff", lambda: (torch.manual_seed(0), vmap(lambda a: torch.randn_like(a), randomness="different")(x)))
case("randn ref", lambda: (torch.manual_seed(0), torch.randn(2, 3)))
case("nested", lambda: vmap(vmap(m, in_dims=(None, 0)), in_dims=(0, None))(x, x))
case("bn", lambda: vmap(torch.nn.BatchNorm1d(3))(torch.ones(2, 4, 3)))
case("func name", lambda: (vmap(torch.mul).__name__, vmap(lambda q: q).__name__))
case("doc", lambda: torch.vmap is vmap)
import torch.nn as nn

ms = [nn.Linear(2, 3) for _ in range(3)]
case(
    "sms",
    lambda: [{k: (v.shape, v.requires_grad, type(v), v.is_leaf) for k, v in d.items()} for d in stack_module_state(ms)],
)
case("sms empty", lambda: stack_module_state([]))
ms[0].eval()
case("sms mix", lambda: stack_module_state(ms))
case("sms type", lambda: stack_module_state([nn.Linear(2, 2).eval(), nn.ReLU().eval()]))
case(
    "fc",
    lambda: functional_call(nn.Linear(2, 1), ({"weight": torch.ones(1, 2)}, {"bias": torch.zeros(1)}), torch.ones(2)),
)
case(
    "fc dup",
    lambda: functional_call(nn.Linear(2, 1), ({"weight": torch.ones(1, 2)}, {"weight": torch.zeros(1)}), torch.ones(2)),
)
case("fc bad", lambda: functional_call(nn.Linear(2, 1), [3], torch.ones(2)))
case("fc bad2", lambda: functional_call(nn.Linear(2, 1), 3, torch.ones(2)))
case("fc strict", lambda: functional_call(nn.Linear(2, 1), {"weight": torch.ones(1, 2)}, torch.ones(2), strict=True))


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


case("fn vmap", lambda: vmap(F.apply)(x))
case("fn grad", lambda: grad(lambda a: F.apply(a).sum())(x))


class G(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


case("fn2 vmap", lambda: vmap(G.apply)(x))
case("fn2 grad", lambda: grad(lambda a: G.apply(a).sum())(x))
case("fn2 jvp", lambda: torch.func.jvp(G.apply, (x,), (x,)))
