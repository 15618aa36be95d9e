# Nodes, edges, hooks on nodes, anomaly mode.
import warnings

import torch
import torch.autograd.graph as G
from programs_case import case
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

x = torch.arange(1.0, 4, requires_grad=True)
w = torch.ones(3, requires_grad=True)
y = x * w
z = y.exp() * 2
e = get_gradient_edge(y)
case(
    "edge",
    lambda: (
        e.node.name(),
        e.output_nr,
        type(e).__name__,
        get_gradient_edge(x).node.name(),
        get_gradient_edge(x).output_nr,
    ),
)
case("edge norg", lambda: get_gradient_edge(torch.ones(2)))
case("grad edge in", lambda: torch.autograd.grad(z.sum(), e, retain_graph=True))
case("grad edge in2", lambda: torch.autograd.grad(z.sum(), [e, x], retain_graph=True))
case("grad edge leaf", lambda: torch.autograd.grad(z.sum(), get_gradient_edge(x), retain_graph=True))
case("grad edge out", lambda: torch.autograd.grad(e, x, torch.ones(3), retain_graph=True))
case("grad edge out nograd", lambda: torch.autograd.grad(e, x, retain_graph=True))
ez = get_gradient_edge(z.sum())
case("bw edge out", lambda: (torch.autograd.backward(ez, retain_graph=True), x.grad))
x.grad = w.grad = None
case("bw edge inputs", lambda: (z.sum().backward(inputs=[get_gradient_edge(x)], retain_graph=True), x.grad, w.grad))
x.grad = w.grad = None
case("bw edge nonleaf", lambda: (z.sum().backward(inputs=[e], retain_graph=True), y.grad if False else 0))
case("unused edge", lambda: torch.autograd.grad(x.sum(), e, allow_unused=True))
n = y.grad_fn
case(
    "node",
    lambda: (
        n.name(),
        [f[0].name() for f in n.next_functions],
        n.metadata,
        isinstance(n, G.Node),
        isinstance(n, torch.autograd.graph.Node),
        issubclass(type(n), G.Node),
        type(n).__name__,
    ),
)
case(
    "acc",
    lambda: (
        n.next_functions[0][0].variable is x,
        n.next_functions[0][0].next_functions,
        type(n.next_functions[0][0]).__name__,
        n.next_functions[0][0] is n.next_functions[0][0],
    ),
)
case("eq", lambda: (y.grad_fn is n, y.grad_fn == n, hash(y.grad_fn) == hash(n)))
n.metadata["a"] = 3
case("meta", lambda: y.grad_fn.metadata)
l = []
h = n.register_hook(lambda gi, go: l.append(("post", [g.tolist() for g in gi], [g.tolist() for g in go])))
h2 = n.register_prehook(lambda go: l.append(("pre", [g.tolist() for g in go])))
case("hooks", lambda: (z.sum().backward(retain_graph=True), l))
h.remove()
h2.remove()
x.grad = w.grad = None
l.clear()
h = n.register_hook(lambda gi, go: (gi[0] * 2, None))
case("hook repl", lambda: (z.sum().backward(retain_graph=True), x.grad.tolist(), w.grad))
h.remove()
x.grad = w.grad = None
h = n.register_prehook(lambda go: (go[0] * 0,))
case("prehook repl", lambda: (z.sum().backward(retain_graph=True), x.grad.tolist(), w.grad))
h.remove()
x.grad = w.grad = None
h = n.register_hook(lambda gi, go: (gi[0] * 2,))
case("hook repl bad", lambda: (z.sum().backward(retain_graph=True), x.grad.tolist()))
h.remove()
x.grad = w.grad = None
h = n.register_hook(lambda gi, go: 3)
case("hook repl bad2", lambda: (z.sum().backward(retain_graph=True), x.grad.tolist()))
h.remove()
x.grad = w.grad = None
a = x.expand_as(x).grad_fn.next_functions[0][0]
h = a.register_hook(lambda gi, go: l.append(("acc", gi, [g.tolist() for g in go])))
case("acc hook", lambda: (z.sum().backward(retain_graph=True), l))
h.remove()
l.clear()
x.grad = w.grad = None
h = a.register_prehook(lambda go: (l.append("accpre"), (go[0] * 3,))[1])
case("acc prehook", lambda: (z.sum().backward(retain_graph=True), l, x.grad))
h.remove()
l.clear()
x.grad = w.grad = None
for mode in ("all", "any"):
    l = []
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    c = torch.ones(2, requires_grad=True)
    d = a * b
    f = b * c
    h = register_multi_grad_hook(
        (a, b, c, d),
        lambda g: l.append(
            [None if q is None else q.tolist() for q in g] if isinstance(g, (list, tuple)) else g.tolist()
        ),
        mode=mode,
    )
    (d.sum()).backward(retain_graph=True)
    print(mode, l)
    l.clear()
    (d.sum() + f.sum()).backward(retain_graph=True)
    print(mode, l)
    l.clear()
    h.remove()
    (d.sum() + f.sum()).backward(retain_graph=True)
    print(mode, l)
case("multi bad mode", lambda: register_multi_grad_hook((a,), lambda g: 0, mode="foo"))
case("multi norg", lambda: register_multi_grad_hook((torch.ones(2),), lambda g: 0))
case("inc versions", lambda: (v0 := a._version, G.increment_version(a), a._version))
case("allow mutation", lambda: G.allow_mutation_on_saved_tensors)


def am():
    with G.allow_mutation_on_saved_tensors():
        a = torch.ones(2, requires_grad=True)
        b = a.clone()
        o = (b**2).sum()
        b.sin_()
        o.backward()
        return a.grad


case("allow mutation run", am)
case("set_warn", lambda: G.set_warn_on_accumulate_grad_stream_mismatch if False else 0)
case("all", lambda: sorted(G.__all__))


# anomaly
def an():
    with warnings.catch_warnings(record=True) as ws:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            x = torch.tensor([0.0], requires_grad=True)
            y = torch.sqrt(x) * 0
            try:
                y.sum().backward()
            except RuntimeError as er:
                r = str(er)
    return r, len(ws), [str(w.message)[:140] for w in ws], "torch.sqrt" in str(ws[-1].message)


case("anomaly", an)


def an2():
    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([0.0], requires_grad=True)
        y = torch.sqrt(x) * 0
        y.sum().backward()


case("anomaly2", an2)
case("anomaly enabled", lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))


def an3():
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        x = torch.tensor([0.0], requires_grad=True)
        y = torch.sqrt(x) * 0
        y.sum().backward()
        return x.grad


case("anomaly3", an3)


def an4():
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("boom")

    with warnings.catch_warnings(record=True) as ws:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            x = torch.tensor([1.0], requires_grad=True)
            y = F.apply(x)
            try:
                y.sum().backward()
            except ValueError as e:
                return str(e), [str(w.message)[:120] for w in ws]


case("anomaly4", an4)
