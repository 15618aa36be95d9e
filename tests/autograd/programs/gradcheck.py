# gradcheck and gradgradcheck.

import torch
from programs_case import case
from torch.autograd import gradcheck, gradgradcheck

D = torch.float64
x = torch.tensor([1.0, 2.0, 3.0], dtype=D, requires_grad=True)
f32 = torch.ones(2, requires_grad=True)
n = torch.ones(2, dtype=D)
c = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128, requires_grad=True)


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3

    @staticmethod
    def jvp(ctx, g):
        return g * 2


class BadF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, g):
        return g * 3


class Non(torch.autograd.Function):
    k = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Non.k += 1
        return g * (2 + 1e-5 * (Non.k % 2))


class Und(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


class Und2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return torch.ones(3, dtype=D) if g is None else g * 2


case("ok", lambda: gradcheck(torch.sin, x))
case("ok tuple", lambda: gradcheck(lambda a, b: (a * b, a + b), (x, x.detach().clone().requires_grad_())))
case("bad", lambda: gradcheck(Bad.apply, x))
case("bad noraise", lambda: gradcheck(Bad.apply, x, raise_exception=False))
case("bad fast", lambda: gradcheck(Bad.apply, x, fast_mode=True))
case("ok fast", lambda: gradcheck(lambda a: (a**3).sum() * a, x, fast_mode=True))
case("f32", lambda: gradcheck(torch.sin, f32))
case("norg", lambda: gradcheck(torch.sin, n))
case("complex", lambda: gradcheck(lambda a: a * a.conj() * a, c))
case("complex abs", lambda: gradcheck(lambda a: a.abs(), c))
case("r2c", lambda: gradcheck(lambda a: torch.complex(a, a * a), x))
case("complex fast", lambda: gradcheck(lambda a: a * a.conj() * a, c, fast_mode=True))
case("c abs fast", lambda: gradcheck(lambda a: a.abs(), c, fast_mode=True))
case("r2c fast", lambda: gradcheck(lambda a: torch.complex(a, a * a), x, fast_mode=True))
case("fwd", lambda: gradcheck(torch.sin, x, check_forward_ad=True))
case("fwd bad", lambda: gradcheck(BadF.apply, x, check_forward_ad=True))
case("fwd bad fast", lambda: gradcheck(BadF.apply, x, check_forward_ad=True, fast_mode=True))
case("fwd only", lambda: gradcheck(Bad.apply, x, check_forward_ad=True, check_backward_ad=False))
case("fwd complex", lambda: gradcheck(lambda a: a * a.conj() * a, c, check_forward_ad=True))
case("neither", lambda: gradcheck(Bad.apply, x, check_backward_ad=False))
case("fwd unimpl", lambda: gradcheck(Non.apply, x, check_forward_ad=True, nondet_tol=1))
case("nondet", lambda: gradcheck(Non.apply, x))
case("nondet tol", lambda: gradcheck(Non.apply, x, nondet_tol=1e-3))
case("nondet fast", lambda: gradcheck(Non.apply, x, fast_mode=True))
case("undef", lambda: gradcheck(Und.apply, x))
case("undef2", lambda: gradcheck(Und2.apply, x))
case("undef off", lambda: gradcheck(Und.apply, x, check_undefined_grad=False))
case("no out", lambda: gradcheck(lambda a: (), x))
case("const", lambda: gradcheck(lambda a: torch.ones(2), x))
case("detached", lambda: gradcheck(lambda a: a.detach() * 2, x))
case("int out", lambda: gradcheck(lambda a: (a * 2).long(), x))
case("mixed", lambda: gradcheck(lambda a: (a * 2, (a * 2).detach().long()), x))
case("nontensor out", lambda: gradcheck(lambda a: (a * 2, 3), x))
case("overlap", lambda: gradcheck(lambda a: a * 2, x[:1].detach().expand(3).requires_grad_()))
case("bad2 idx", lambda: gradcheck(lambda a, b: (a * 2, Bad.apply(b)), (x, x.detach().clone().requires_grad_())))
case("batched", lambda: gradcheck(torch.sin, x, check_batched_grad=True))
case("batched fwd", lambda: gradcheck(torch.sin, x, check_batched_forward_grad=True, check_forward_ad=True))
case("batched fwd bad", lambda: gradcheck(torch.sin, x, check_batched_forward_grad=True))
case("dtypes", lambda: gradcheck(torch.sin, x, check_grad_dtypes=True))
case("inplace", lambda: gradcheck(lambda a: a.clone().mul_(3), x))
case("modifies", lambda: gradcheck(lambda a: a.mul_(3), x.clone()))
case("gg ok", lambda: gradgradcheck(torch.sin, x))
case("gg bad", lambda: gradgradcheck(lambda a: Bad.apply(a) * a, x))
case("gg fast", lambda: gradgradcheck(lambda a: a**3, x, fast_mode=True))
case("gg gradout", lambda: gradgradcheck(lambda a: a**3, x, torch.ones(3, dtype=D, requires_grad=True)))
case("gg complex", lambda: gradgradcheck(lambda a: a**3, c))
case("gg fwd", lambda: gradgradcheck(lambda a: a**3, x, check_fwd_over_rev=True))
case("gg noncontig", lambda: gradgradcheck(lambda a: a**3, x, gen_non_contig_grad_outputs=True))
case("list inputs", lambda: gradcheck(torch.sin, [x]))
case("nested func", lambda: gradcheck(lambda a, k: a * k, (x, 3)))
case("sparse masked", lambda: gradcheck(torch.sin, x, masked=True))
case("empty", lambda: gradcheck(torch.sin, torch.zeros(0, dtype=D, requires_grad=True)))
case("scalar", lambda: gradcheck(torch.sin, torch.tensor(1.0, dtype=D, requires_grad=True)))
