# torch.autograd.functional: strict mode, wrong arguments.
import torch
from programs_case import case
from torch.autograd import functional as AF

x = torch.ones(2)
y = torch.ones(2)
xr = x.clone().requires_grad_()
for name in ("vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"):
    F = getattr(AF, name)
    extra = {"vjp": (x,), "jvp": (x,), "hvp": (x,), "vhp": (x,)}.get(name, ())
    sc = name in ("hessian", "hvp", "vhp")
    z = lambda r: r.sum() if sc else r
    if name == "vjp":
        z = lambda r: r
    for kw in ({}, {"strict": True}, {"strict": True, "create_graph": True}):
        for fn, f in {
            "const": lambda a: z(torch.ones(2)),
            "lin": lambda a: z(a * 2),
            "sq": lambda a: z(a**2),
            "cube": lambda a: z(a**3),
            "nontens": lambda a: 3,
            "nontens2": lambda a: (z(a), 3),
            "constrg": lambda a: z(torch.ones(2, requires_grad=True) * 2),
            "two": lambda a: (z(a), z(a)),
            "notscal": lambda a: a * 2,
            "none": lambda a: None,
        }.items():
            for inp in (x,) if not kw else (x, xr):
                case(f"{name} {kw} {fn} {inp.requires_grad}", lambda: F(f, inp, *extra, **kw))
    case(name + " in", lambda: F(lambda a: z(a), 3, *extra))
    case(name + " in2", lambda: F(lambda a: z(a), (x, 3), *extra))
    case(name + " two in", lambda: F(lambda a, b: z(a), (x, y), *[(e, e) if name != "vjp" else e for e in extra]))
    case(
        name + " two in strict",
        lambda: F(lambda a, b: z(a * a), (x, y), *[(e, e) if name != "vjp" else e for e in extra], strict=True),
    )
    case(name + " two in v1", lambda: F(lambda a, b: z(a), (x, y), *extra))
    if extra:
        case(name + " v none", lambda: F(lambda a: z(a), x))
        case(name + " v size", lambda: F(lambda a: z(a), x, torch.ones(5)))
        case(name + " v int", lambda: F(lambda a: z(a), x, 3))
        case(name + " v tup2", lambda: F(lambda a: z(a), x, (x, x)))
        case(name + " v tup1", lambda: F(lambda a: z(a), x, (x,)))
        case(name + " scalar", lambda: F(lambda a: a**2, torch.tensor(3.0)))
    case(name + " list", lambda: F(lambda a: z(a), [x], *extra))
case("jac vec strict cg", lambda: AF.jacobian(lambda a: a * 2, xr, strict=True, create_graph=True, vectorize=True))
case("jac vec cg", lambda: AF.jacobian(lambda a: a**2, xr, create_graph=True, vectorize=True))
case("jac vec", lambda: AF.jacobian(lambda a: a**2, xr, vectorize=True))
case("jac xr", lambda: AF.jacobian(lambda a: a**2, xr))
case("jac fwd strict", lambda: AF.jacobian(lambda a: a**2, x, vectorize=True, strategy="forward-mode", strict=True))
case(
    "jac fwd two",
    lambda: AF.jacobian(lambda a, b: (a * b, a.sum()), (x, y * 3), vectorize=True, strategy="forward-mode"),
)
case("jac fwd xr", lambda: AF.jacobian(lambda a: a**2, xr, vectorize=True, strategy="forward-mode"))
case(
    "hess fwd two",
    lambda: AF.hessian(
        lambda a, b: (a * b * a).sum(), (x, y * 3), vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
)
case("hess vec", lambda: AF.hessian(lambda a, b: (a * b * a).sum(), (x, y * 3), vectorize=True))
case("hess xr", lambda: AF.hessian(lambda a: (a * a * a).sum(), xr))
case("hess vec strict", lambda: AF.hessian(lambda a: (a * a * a).sum(), x, vectorize=True, strict=True))
case(
    "hess fwd strict",
    lambda: AF.hessian(lambda a: (a * a * a).sum(), x, outer_jacobian_strategy="forward-mode", strict=True),
)
