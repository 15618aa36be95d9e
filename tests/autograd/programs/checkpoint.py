# utils.checkpoint, both kinds.
import warnings

import torch
from programs_case import case
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

w = torch.ones(3, requires_grad=True)
for re in (True, False):
    n = [0]

    def f(x, k=1):
        n[0] += 1
        return (x * w).exp() * k

    x = torch.arange(3.0, requires_grad=True)

    def run():
        n[0] = 0
        y = checkpoint(f, x, use_reentrant=re)
        a = n[0]
        y.sum().backward()
        r = (a, n[0], x.grad.tolist(), w.grad.tolist(), y.grad_fn.name())
        x.grad = w.grad = None
        return r

    case(f"{re} basic", run)
    case(f"{re} kwargs", lambda: (checkpoint(f, x, use_reentrant=re, k=3).sum().backward(), x.grad.tolist()))
    x.grad = w.grad = None
    case(f"{re} noargs", lambda: checkpoint(lambda: (w * 2).sum(), use_reentrant=re).requires_grad)
    case(f"{re} grad", lambda: torch.autograd.grad(checkpoint(f, x, use_reentrant=re).sum(), x))
    case(f"{re} bw inputs", lambda: checkpoint(f, x, use_reentrant=re).sum().backward(inputs=[x]))
    case(
        f"{re} double",
        lambda: torch.autograd.grad(
            torch.autograd.grad(checkpoint(f, x, use_reentrant=re).sum(), x, create_graph=True)[0].sum(), x
        ),
    )
    x.grad = w.grad = None
    case(
        f"{re} nested",
        lambda: (
            checkpoint(lambda a: checkpoint(f, a * 2, use_reentrant=re) * 2, x, use_reentrant=re).sum().backward(),
            x.grad.tolist(),
            w.grad.tolist(),
        ),
    )
    x.grad = w.grad = None

    def rng():
        torch.manual_seed(0)
        torch.manual_seed(3)
        y = checkpoint(lambda a: torch.dropout(a, 0.5, True), x + 1, use_reentrant=re)
        z = torch.rand(1)
        y.sum().backward()
        r = (y.tolist(), x.grad.tolist(), z.item(), torch.rand(1).item())
        x.grad = None
        return r

    case(f"{re} rng", rng)
    case(
        f"{re} twice", lambda: (lambda y: (y.sum().backward(), y.sum().backward()))(checkpoint(f, x, use_reentrant=re))
    )
    case(
        f"{re} retain",
        lambda: (lambda y: (y.sum().backward(retain_graph=True), y.sum().backward()))(
            checkpoint(f, x, use_reentrant=re)
        ),
    )
    x.grad = w.grad = None
    case(
        f"{re} dict out",
        lambda: {
            k: v.requires_grad for k, v in checkpoint(lambda a: {"o": a * 2, "p": 3}, x, use_reentrant=re).items()
        },
    )
    case(
        f"{re} tuple out",
        lambda: [
            v if not isinstance(v, torch.Tensor) else v.requires_grad
            for v in checkpoint(lambda a: (a * 2, 3, None, torch.ones(2)), x, use_reentrant=re)
        ],
    )
    case(
        f"{re} dict in", lambda: (checkpoint(lambda d: d["a"] * 2, {"a": x}, use_reentrant=re).sum().backward(), x.grad)
    )
    x.grad = None
    case(f"{re} none req", lambda: checkpoint(lambda a: a * 2, torch.ones(2), use_reentrant=re).requires_grad)
    case(f"{re} param only", lambda: (checkpoint(f, torch.ones(3), use_reentrant=re).sum().backward(), w.grad))
    w.grad = None

    def nong():
        with torch.no_grad():
            return checkpoint(f, x, use_reentrant=re).requires_grad

    case(f"{re} nograd", nong)
    case(
        f"{re} seq",
        lambda: (
            checkpoint_sequential(
                torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid(), torch.nn.Tanh()), 2, x, use_reentrant=re
            )
            .sum()
            .backward(),
            x.grad,
        ),
    )
    x.grad = None
    cnt = [0]

    def nondet(a):
        cnt[0] += 1
        return (a * 2).exp() if cnt[0] % 2 else (a * 2).exp().exp()

    case(f"{re} nondet more", lambda: checkpoint(nondet, x, use_reentrant=re).sum().backward())
    cnt[0] = 1
    case(f"{re} nondet fewer", lambda: checkpoint(nondet, x, use_reentrant=re).sum().backward())

    def nondet2(a):
        cnt[0] += 1
        return (a * 2).exp().sum() if cnt[0] % 2 else (a[:2] * 2).exp().sum()

    cnt[0] = 0
    case(f"{re} nondet shape", lambda: checkpoint(nondet2, x, use_reentrant=re).backward())
    cnt[0] = 0
    case(f"{re} nondet nocheck", lambda: checkpoint(nondet2, x, use_reentrant=re, determinism_check="none").backward())

    def hooks():
        l = []
        y = x * 1
        y.register_hook(lambda g: l.append(g.tolist()))
        z = checkpoint(f, y, use_reentrant=re)
        z.sum().backward()
        return l

    case(f"{re} hook", hooks)
    x.grad = w.grad = None
case("bad kw", lambda: checkpoint(lambda a: a, x, use_reentrant=True, foo=3))
case("bad kw2", lambda: checkpoint(lambda a: a, x, use_reentrant=False, foo=3))
case("ctx re", lambda: checkpoint(lambda a: a, x, use_reentrant=True, context_fn=lambda: 3))


def early():
    n = [0]

    def f(a):
        a = (a * 2).exp()
        n[0] += 1
        b = a + 1
        n.append(1)
        return b

    y = checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    r = (n[0], len(n))
    with set_checkpoint_early_stop(False):
        n[:] = [0]
        y = checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    return r, n[0], len(n)


case("early", early)


def ctxs():
    import contextlib

    l = []

    @contextlib.contextmanager
    def c(name):
        l.append(name)
        yield
        l.append(name + "e")

    y = checkpoint(lambda a: (a * 2).sin(), x, use_reentrant=False, context_fn=lambda: (c("f"), c("r")))
    y.sum().backward()
    return l


case("ctx", ctxs)


def lin():
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    X = torch.randn(5, 3)
    r = []
    for re in (True, False):
        torch.manual_seed(1)
        X.requires_grad_()
        m.zero_grad()
        checkpoint(m, X, use_reentrant=re).pow(2).sum().backward()
        r.append(round(m[0].weight.grad.abs().sum().item(), 4))
    return r, m[1].num_batches_tracked.item()


case("mod", lin)
case("default", lambda: checkpoint(lambda a: a * 2, x).requires_grad)
warnings.simplefilter("error")
case("default warn", lambda: checkpoint(lambda a: a * 2, x).requires_grad)
case("none req warn", lambda: checkpoint(lambda a: a * 2, torch.ones(2), use_reentrant=True).requires_grad)
case("seq warn", lambda: checkpoint_sequential([lambda a: a * 2], 1, x).requires_grad)
