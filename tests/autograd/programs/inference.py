# Inference mode: what is an inference tensor, and what it refuses.
import torch
from programs_case import case

x = torch.ones(3)
xr = torch.ones(3, requires_grad=True)
with torch.inference_mode():
    a = torch.ones(3)
    b = x * 2
    c = x[:2]
    d = x.view(3)
    e = x.detach()
    f = a[:2]
    g = torch.ones(2, requires_grad=True)
    h = xr * 2
    i = xr[:2]
    j = x.data
    k = x.clone()
    l = x.expand(2, 3)
    m = x.reshape(3, 1)
    n = x.contiguous()
    o = x.to(torch.float32)
    p = torch.from_numpy(x.numpy())
    q = x.unbind(0)[0]
    r = x.sum()
    s, u = x.sort()
    v = x.bool()
    w = torch.tensor([1.0])
    y = i * 2
    z = x.add_(1)
    aa = torch.empty(2)
    aa.copy_(x[:2])
    bb = torch.add(x, 1, out=torch.empty(3))
    cc = a.detach()
    print([torch.is_grad_enabled(), torch.is_inference_mode_enabled()])
    case("vers in", lambda: a._version)
    case("vers norm in", lambda: x._version)
    case("nested False", lambda: None)
    with torch.inference_mode(False):
        print([torch.is_grad_enabled(), torch.is_inference_mode_enabled()])
        ff = torch.ones(2)
        print(ff.is_inference(), (xr * 2).requires_grad)
    with torch.enable_grad():
        print([torch.is_grad_enabled(), torch.is_inference_mode_enabled()])
        gg = xr * 2
        print(gg.requires_grad, gg.is_inference())
    case("rg in", lambda: (a.requires_grad_().requires_grad, torch.ones(2).requires_grad_()))
    case("bw in", lambda: xr.sum().backward())
    case("inplace in", lambda: b.add_(1))
    case("inpl leaf in", lambda: xr.add_(1))
for name in "a b c d e f g h j k l m n o p q r s u v w y z aa bb cc".split():
    T = locals()[name]
    print(name, T.is_inference(), T.requires_grad, T.is_leaf)
a = torch.inference_mode()(lambda: torch.ones(3))()
case("clone", lambda: a.clone().is_inference())
case(
    "view out",
    lambda: (a.view(3).is_inference(), a[:1].is_inference(), a.detach().is_inference(), a.data.is_inference()),
)
case("add out", lambda: (a + 1).is_inference())
case(
    "contig",
    lambda: (
        a.contiguous().is_inference(),
        a.to(torch.float32).is_inference(),
        a.reshape(3, 1).is_inference(),
        a.double().is_inference(),
    ),
)
case("ver out", lambda: a._version)
case("inplace out", lambda: a.add_(1))
case("inplace view out", lambda: a[:1].add_(1))
case("setitem out", lambda: a.__setitem__(0, 5))
case("out= out", lambda: torch.add(x, 1, out=a))
case("copy to", lambda: x.copy_(a))
case("rg out", lambda: a.requires_grad_())
case("rg prop", lambda: setattr(a, "requires_grad", True))
case("rg false", lambda: a.requires_grad_(False).requires_grad)
case("save mul", lambda: xr * a)
case("save add", lambda: (xr + a).requires_grad)
case("save mm", lambda: xr.reshape(1, 3) @ a.reshape(3, 1))
case("inp norm in-mode then out", lambda: x._version)
case("mul nograd", lambda: torch.no_grad()(lambda: xr * a)())
case("xr.mul_", lambda: (xr * 1).mul_(a))
case("add_ a", lambda: (xr * 1).add_(a))
case("index", lambda: xr[torch.inference_mode()(lambda: torch.tensor([0, 1]))()])
case("where", lambda: torch.where(a > 0, xr, xr * 2))
case("where2", lambda: torch.where(torch.inference_mode()(lambda: torch.tensor([True, False, True]))(), xr, xr * 2))
case(
    "Function",
    lambda: type(
        "F",
        (torch.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, x, y: (ctx.save_for_backward(x, y), x * y)[1]),
            "backward": staticmethod(lambda ctx, g: (g, g)),
        },
    ).apply(xr, a),
)
case("Parameter", lambda: torch.nn.Parameter(a))
case("Parameter in", lambda: torch.inference_mode()(lambda: torch.nn.Parameter(torch.ones(2)).is_inference())())
case("deepcopy", lambda: __import__("copy").deepcopy(a).is_inference())
case("numpy", lambda: a.numpy())
case("grad set", lambda: setattr(xr, "grad", a))
case("y view-inplace", lambda: i.add_(1))
case("view of normal made in inf, add_ out", lambda: c.add_(1))
case("h rg", lambda: h.requires_grad_())
case("backward i", lambda: (i * 2).sum().requires_grad)
case("as dec gen", lambda: list(torch.inference_mode()(lambda: (k for k in range(2)))()))
case("tensor", lambda: torch.tensor(a).is_inference())
case("a.is_inf builtin", lambda: torch.is_inference(a))
case("stack", lambda: torch.stack([xr, a]).requires_grad)
case("exp", lambda: a.exp().is_inference())
case("xr.sum().backward", lambda: (xr.sum().backward(), xr.grad.is_inference()))
case("bw with inf grad", lambda: ((xr * 2).backward(a), xr.grad.is_inference()))
