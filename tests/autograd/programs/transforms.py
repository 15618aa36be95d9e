# torch.func on one function: arguments, results, errors.
import torch
from programs_case import case
from torch.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp

x = torch.arange(6.0).reshape(2, 3)
s = torch.sum
case("grad int", lambda: grad(lambda x: x.sum().float())(torch.arange(3)))
case("grad nonscalar", lambda: grad(lambda x: x * 2)(x))
case("grad nontensor", lambda: grad(lambda x: 3.0)(x))
case("grad aux no tuple", lambda: grad(lambda x: x.sum(), has_aux=True)(x))
case("grad aux 3", lambda: grad(lambda x: (x.sum(), 1, 2), has_aux=True)(x))
case("grad argnums oob", lambda: grad(s, argnums=1)(x))
case("grad argnums neg", lambda: grad(s, argnums=-2)(x))
case("grad argnums bad", lambda: grad(s, argnums="a")(x))
case("grad argnums dup", lambda: grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(x, x))
case("grad argnums empty", lambda: grad(lambda a, b: (a * b).sum(), argnums=())(x, x))
case("grad noargs", lambda: grad(s)())
case("grad pytree", lambda: grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [x]}))
case("grad nontensor in tree", lambda: grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": 3}))
case("grad unused", lambda: grad(lambda a: torch.ones(()))(x))
case("grad aux nontensor", lambda: grad(lambda a: (a.sum(), "q"), has_aux=True)(x))
case("requires_grad_ inside", lambda: grad(lambda a: (a.clone().requires_grad_()).sum())(x))
case("backward inside", lambda: grad(lambda a: (a.sum().backward(), a.sum())[1])(x))
case(
    "rg inside",
    lambda: grad(lambda a: (print(a.requires_grad, a.grad_fn, a.is_leaf, type(a), (a * 2).requires_grad), a.sum())[1])(
        x
    ),
)
xx = x.clone().requires_grad_()
case("outer rg", lambda: grad(lambda a: (a**2).sum())(xx))
w = torch.ones(3, requires_grad=True)
case("closure rg", lambda: grad(lambda a: (a * w).sum())(x))
case("closure rg unused", lambda: grad(lambda a: (a * 2).sum())(x))


def ng():
    with torch.no_grad():
        return grad(lambda a: (a * w).sum())(x)


case("nograd outer", ng)


def ng2(a):
    with torch.no_grad():
        c = a**2
    return (a - c).sum()


case("nograd inner", lambda: grad(ng2)(x))
case("complex out", lambda: grad(lambda a: (a * 1j).sum())(x))
case("vjp nontensor out", lambda: vjp(lambda a: 3, x))
case("vjp empty out", lambda: vjp(lambda a: (), x))
case("vjp", lambda: vjp(torch.sin, x)[1](x))
case("vjp mismatch", lambda: vjp(torch.sin, x)[1](torch.ones(2)))
case("vjp struct", lambda: vjp(torch.sin, x)[1]((x, x)))
case("vjp struct2", lambda: vjp(lambda a: (a, a), x)[1](x))
case("vjp aux", lambda: vjp(lambda a: a, x, has_aux=True))
case("vjp noprimals", lambda: vjp(lambda: x))
case("jvp primals", lambda: jvp(torch.sin, x, x))
case("jvp tang", lambda: jvp(torch.sin, (x,), x))
case("jvp struct", lambda: jvp(torch.sin, (x,), (x, x)))
case("jvp empty", lambda: jvp(lambda: x, (), ()))
case("jvp shape", lambda: jvp(torch.sin, (x,), (torch.ones(2),)))
case("jvp dtype", lambda: jvp(torch.sin, (x,), (x.double(),)))
case("jvp nontens", lambda: jvp(torch.sin, (x,), (1.0,)))
case("jvp nontens p", lambda: jvp(torch.sin, (1.0,), (1.0,)))
case("jvp out nontens", lambda: jvp(lambda a: 1.0, (x,), (x,)))
case("jvp int", lambda: jvp(lambda a: a * 1.0, (torch.arange(3),), (torch.arange(3),)))
case("jvp unused strict", lambda: jvp(lambda a: torch.ones(2), (x,), (x,), strict=True))
case("jvp unused", lambda: jvp(lambda a: torch.ones(2), (x,), (x,)))
case("jvp rg", lambda: jvp(lambda a: (print(a.requires_grad, (a * 2).requires_grad, a.is_leaf), a * 2)[1], (x,), (x,)))
case("jacrev", lambda: jacrev(lambda a: a.sin())(torch.ones(2)))
case("jacrev nontens", lambda: jacrev(lambda a: 3.0)(torch.ones(2)))
case("jacrev int", lambda: jacrev(lambda a: a)(torch.arange(2)))
case("jacfwd int", lambda: jacfwd(lambda a: a)(torch.arange(2)))
case("jacfwd nontens", lambda: jacfwd(lambda a: 3.0)(torch.ones(2)))
case("jacrev chunk", lambda: jacrev(lambda a: a.sin(), chunk_size=0)(torch.ones(2)))
case("jacrev tree", lambda: jacrev(lambda a, b: {"o": a * b["z"]}, argnums=(0, 1))(torch.ones(2), {"z": torch.ones(2)}))
case("jacfwd tree", lambda: jacfwd(lambda a, b: {"o": a * b["z"]}, argnums=(0, 1))(torch.ones(2), {"z": torch.ones(2)}))
case("jacfwd aux", lambda: jacfwd(lambda a: (a * 2, a.sum()), has_aux=True)(torch.ones(2)))
case("jacrev aux", lambda: jacrev(lambda a: (a * 2, a.sum()), has_aux=True)(torch.ones(2)))
case("hessian", lambda: hessian(lambda a: (a**3).sum())(torch.ones(2)))
case(
    "hessian tree",
    lambda: hessian(lambda a: (a["p"] ** 3).sum() * a["q"])({"p": torch.ones(2), "q": torch.tensor(2.0)}),
)
case("linearize", lambda: linearize(torch.sin, torch.ones(2))[1](torch.ones(2)))
case("jacrev chunk+pre", lambda: jacrev(lambda a: a.sin(), chunk_size=1, _preallocate_and_copy=True)(torch.ones(2)))
