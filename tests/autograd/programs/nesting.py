# Transforms of transforms, forward mode, torch.autograd.functional.
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn as nn
import torch.nn.functional as F
from programs_case import case
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

torch.manual_seed(0)
x = torch.tensor([0.5, -1.0, 2.0])
y = torch.tensor([1.0, 2.0, 3.0])
case("gg", lambda: grad(grad(torch.sin))(torch.tensor(0.7)))
case("ggg", lambda: grad(grad(grad(torch.sin)))(torch.tensor(0.7)))
case("pc", lambda: grad(lambda a: a * grad(lambda b: a * b)(torch.tensor(1.0)))(torch.tensor(3.0)))
case("vmap grad", lambda: vmap(grad(torch.sin))(x))
case("vmap vmap grad grad", lambda: vmap(grad(grad(torch.sin)))(x))
case("vmap jacrev", lambda: vmap(jacrev(torch.sin))(torch.stack([x, y])))
case("vmap jacfwd", lambda: vmap(jacfwd(torch.sin))(torch.stack([x, y])))
case("jacfwd jacrev", lambda: jacfwd(jacrev(lambda a: (a**3).sum()))(x))
case("jacfwd jacfwd", lambda: jacfwd(jacfwd(lambda a: (a**3).sum() * a[0]))(x))
case("jacrev jacrev", lambda: jacrev(jacrev(lambda a: (a**3).sum() * a[0]))(x))
case("jacrev jacfwd", lambda: jacrev(jacfwd(lambda a: (a**3).sum() * a[0]))(x))
case("jacfwd grad", lambda: jacfwd(grad(lambda a: (a.exp() * a[0]).sum()))(x))
case("grad jvp", lambda: grad(lambda a: jvp(lambda b: (b**3).sum(), (a,), (torch.ones(3),))[1])(x))
case("jvp grad", lambda: jvp(grad(lambda b: (b**3).sum()), (x,), (torch.ones(3),)))
case("jvp jvp", lambda: jvp(lambda a: jvp(torch.sin, (a,), (torch.ones(3),))[1], (x,), (torch.ones(3),)))
case(
    "jvp jvp pc",
    lambda: jvp(
        lambda a: a * jvp(lambda b: a * b, (torch.ones(()),), (torch.ones(()),))[1],
        (torch.tensor(3.0),),
        (torch.ones(()),),
    ),
)
case(
    "hessian mm",
    lambda: hessian(lambda w: F.cross_entropy(torch.stack([x, y]) @ w, torch.tensor([0, 1])))(
        torch.arange(6.0).reshape(3, 2) / 5
    ),
)
case("vjp tuple", lambda: vjp(lambda a, b: (a * b, a + b), x, y)[1]((x, y)))
case("vmap vjp", lambda: vmap(lambda a: vjp(torch.sin, a)[1](torch.ones(()))[0])(x))
case("vmap jvp", lambda: vmap(lambda a: jvp(torch.sin, (a,), (torch.ones(()),)))(x))
case("vjp vmapped", lambda: vmap(vjp(lambda a: a**2, x)[1])(torch.eye(3)))
m = nn.Linear(3, 2)
ps = {k: v.detach() for k, v in m.named_parameters()}


def loss(p, a, l):
    return F.cross_entropy(functional_call(m, p, (a[None],)), l[None])


X = torch.randn(4, 3)
L = torch.tensor([0, 1, 1, 0])
case("per sample", lambda: vmap(grad(loss), in_dims=(None, 0, 0))(ps, X, L))
case("per sample aux", lambda: vmap(grad_and_value(loss), in_dims=(None, 0, 0))(ps, X, L))
ms = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(3)]
P, B = stack_module_state(ms)
case("ensemble", lambda: vmap(lambda p, b, a: functional_call(ms[0], (p, b), (a,)), in_dims=(0, 0, None))(P, B, X))


def ens():
    out = vmap(lambda p, b, a: functional_call(ms[0], (p, b), (a,)), in_dims=(0, 0, None))(P, B, X)
    out.sum().backward()
    return {k: v.grad for k, v in P.items()}


case("ensemble bw", ens)
case(
    "maml",
    lambda: grad(lambda w: ((w - 0.1 * grad(lambda v: ((v * x) ** 2).sum())(w)) * y).pow(2).sum())(torch.ones(3)),
)
wr = torch.ones(3, requires_grad=True)


def outer():
    g = grad(lambda a: (a * a * wr).sum())(x)
    g.sum().backward()
    r = wr.grad.clone()
    wr.grad = None
    return r


case("outer backward", outer)
xr = x.clone().requires_grad_()


def outer2():
    g = grad(lambda a: (a**3).sum())(xr)
    g.sum().backward()
    r = xr.grad.clone()
    xr.grad = None
    return r


case("outer backward x", outer2)


def outer3():
    o, tt = jvp(lambda a: (a**3) * wr, (xr,), (torch.ones(3),))
    tt.sum().backward()
    r = xr.grad.clone(), wr.grad.clone()
    xr.grad = None
    wr.grad = None
    return r


case("outer jvp", outer3)


def outer4():
    r = vmap(lambda a: a**3)(xr)
    r.sum().backward()
    r = xr.grad.clone()
    xr.grad = None
    return r


case("vmap bw", outer4)


class G(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2, x + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h

    @staticmethod
    def jvp(ctx, g):
        return g * 2, g * 1


case("G grad", lambda: grad(lambda a: G.apply(a)[0].sum())(x))
case("G jvp", lambda: jvp(G.apply, (x,), (y,)))
case("G vmap", lambda: vmap(G.apply)(x))
case("G jac", lambda: jacfwd(lambda a: G.apply(a)[0])(x))


# forward ad
def fa(f):
    def run():
        with fwAD.dual_level():
            return f()

    return run


case("dual", fa(lambda: fwAD.unpack_dual(torch.sin(fwAD.make_dual(x, y.clone())))))
case("dual rg", fa(lambda: (fwAD.make_dual(x, y.clone()).requires_grad, fwAD.make_dual(x, y.clone()).is_leaf)))
case("dual xr", fa(lambda: fwAD.unpack_dual(fwAD.make_dual(xr, y.clone()) ** 2)))
case("dual none", fa(lambda: fwAD.unpack_dual(x)))
case("dual detach", fa(lambda: fwAD.unpack_dual(fwAD.make_dual(x, y.clone()).detach())))


def nog():
    with torch.no_grad():
        return fwAD.unpack_dual(fwAD.make_dual(xr, y.clone()) ** 2)


case("dual nograd", fa(nog))


def inpl():
    d = fwAD.make_dual(x.clone(), y.clone())
    z = torch.zeros(3)
    z[1:] = d[1:] * 2
    z.mul_(d)
    return fwAD.unpack_dual(z)


case("dual inplace", fa(inpl))


def vw():
    d = fwAD.make_dual(x.clone(), y.clone())
    v = d[:2]
    v.mul_(3)
    return fwAD.unpack_dual(d)


case("dual view", fa(vw))
case("dual nolevel", lambda: fwAD.make_dual(x, y.clone()))
case("unpack nolevel", lambda: fwAD.unpack_dual(x))
case("dual int", fa(lambda: fwAD.make_dual(torch.arange(3), y)))
case("dual int t", fa(lambda: fwAD.make_dual(x, torch.arange(3))))
case("dual size", fa(lambda: fwAD.make_dual(x, torch.ones(2))))
case("dual dtype", fa(lambda: fwAD.make_dual(x, torch.ones(3).double())))
case("dual notensor", fa(lambda: fwAD.make_dual(3.0, torch.ones(3).double())))


def nested():
    with fwAD.dual_level():
        with fwAD.dual_level():
            pass


case("nested level", nested)
case("exit", lambda: fwAD.exit_dual_level())
case("exit2", fa(lambda: fwAD.exit_dual_level(level=3)))


def after():
    with fwAD.dual_level():
        d = fwAD.make_dual(x, y.clone())
    with fwAD.dual_level():
        return fwAD.unpack_dual(d)


case("after", after)
case("twice", fa(lambda: fwAD.make_dual(fwAD.make_dual(x, y.clone()), y)))


def mod():
    lin = nn.Linear(3, 2)
    lin.weight.data.fill_(0.5)
    lin.bias.data.fill_(0.1)
    for n, p in list(lin.named_parameters()):
        delattr(lin, n)
        setattr(lin, n, fwAD.make_dual(p, torch.ones_like(p)))
    return fwAD.unpack_dual(lin(x))


case("module", fa(mod))
case("unpack names", fa(lambda: type(fwAD.unpack_dual(x)).__name__ + str(fwAD.unpack_dual(x)._fields)))
case("repr", fa(lambda: repr(fwAD.make_dual(x, y.clone()))))
case(
    "complex",
    fa(
        lambda: torch.view_as_real(
            fwAD.unpack_dual((fwAD.make_dual(torch.complex(x, y), torch.complex(y, x)) ** 2).exp()).tangent
        )
    ),
)
case("is fwd", fa(lambda: fwAD.make_dual(x, y.clone())._fw_grad(0) if False else 0))


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


case("Bad", fa(lambda: Bad.apply(fwAD.make_dual(x, y.clone()))))


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def jvp(ctx, g):
        return g * 2, g


case("Wrong", fa(lambda: Wrong.apply(fwAD.make_dual(x, y.clone()))))


class Wrong2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def jvp(ctx, g):
        return g[:2]


case("Wrong2", fa(lambda: Wrong2.apply(fwAD.make_dual(x, y.clone()))))


class WN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def jvp(ctx, g, n):
        return g * 5 if n is None else g


case("WN", fa(lambda: fwAD.unpack_dual(WN.apply(fwAD.make_dual(x, y.clone()), 2))))
from torch.autograd import functional as AF

case("AF jac fwd", lambda: AF.jacobian(lambda a: a**2, x, vectorize=True, strategy="forward-mode"))
case("AF jac fwd nv", lambda: AF.jacobian(lambda a: a**2, x, strategy="forward-mode"))
case("AF jac vec", lambda: AF.jacobian(lambda a, b: (a * b, a.sum()), (x, y), vectorize=True))
case("AF hess", lambda: AF.hessian(lambda a: (a**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"))
case("AF hess nv", lambda: AF.hessian(lambda a: (a**3).sum(), x, outer_jacobian_strategy="forward-mode"))
case("AF hess2", lambda: AF.hessian(lambda a, b: (a**3 * b).sum(), (x, y)))
case("AF jac strict", lambda: AF.jacobian(lambda a: torch.ones(2), x, strict=True))
case("AF jac strict vec", lambda: AF.jacobian(lambda a: torch.ones(2), x, strict=True, vectorize=True))
case("AF jac cg strict", lambda: AF.jacobian(lambda a: a * 2, xr, create_graph=True, strict=True))
case("AF jac cg", lambda: AF.jacobian(lambda a: a**2, xr, create_graph=True))
case("AF vjp strict", lambda: AF.vjp(lambda a: torch.ones(2), x, torch.ones(2), strict=True))
case("AF vjp v none", lambda: AF.vjp(lambda a: a * 2, x))
case("AF vjp size", lambda: AF.vjp(lambda a: a * 2, x, torch.ones(2)))
case("AF vjp nt", lambda: AF.vjp(lambda a: 3, x, torch.ones(2)))
case("AF in nt", lambda: AF.vjp(lambda a: 3, 3, torch.ones(2)))
case("AF in nt2", lambda: AF.vjp(lambda a: 3, (x, 3), torch.ones(2)))
case("AF jvp", lambda: AF.jvp(lambda a, b: a * b, (x, y), (x, y)))
case("AF jvp strict", lambda: AF.jvp(lambda a: torch.ones(2), x, x, strict=True))
case("AF hvp", lambda: AF.hvp(lambda a: (a**3).sum(), x, x))
case("AF vhp", lambda: AF.vhp(lambda a: (a**3).sum(), x, x))
case("AF hvp strict", lambda: AF.hvp(lambda a: (a * 2).sum(), x, x, strict=True))
case("AF vhp strict", lambda: AF.vhp(lambda a: (a * 2).sum(), x, x, strict=True))
case("AF hessian strict", lambda: AF.hessian(lambda a: (a * 2).sum(), x, strict=True))
case("AF hvp v", lambda: AF.hvp(lambda a: (a * 2).sum(), x, (x, x)))
case("AF hvp nv", lambda: AF.hvp(lambda a: (a * 2).sum(), x))
case("AF hvp nonscal", lambda: AF.hvp(lambda a: a * 2, x, x))
case("AF hvp tup", lambda: AF.hvp(lambda a: ((a * 2).sum(),) * 2, x, x))
case("AF bad strat", lambda: AF.jacobian(lambda a: a, x, strategy="foo"))
case("AF fwd cg", lambda: AF.jacobian(lambda a: a, x, strategy="forward-mode", create_graph=True))
case("AF hess strat", lambda: AF.hessian(lambda a: a.sum(), x, outer_jacobian_strategy="foo"))
case(
    "AF hess fwd cg",
    lambda: AF.hessian(lambda a: a.sum(), x, create_graph=True, outer_jacobian_strategy="forward-mode"),
)
case("batched grad", lambda: torch.autograd.grad(xr**2, xr, torch.eye(3), is_grads_batched=True))
case("batched grad bad", lambda: torch.autograd.grad(xr**2, xr, torch.eye(2), is_grads_batched=True))
