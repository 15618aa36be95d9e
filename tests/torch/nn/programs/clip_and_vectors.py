# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
U = nn.utils
ps = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(1))]


def setg():
    for i, p in enumerate(ps[:2]):
        p.grad = torch.full_like(p, i + 1.0)


for nt in (2.0, 1, 3.0, float("inf"), 0):
    setg()
    print(U.clip_grad_norm_(ps, 1.0, nt), ps[0].grad, ps[1].grad)
setg()
print(U.clip_grad_norm_(iter(ps), 100.0), ps[0].grad)
print(U.clip_grad_norm_(ps[0], 1.0))
print(U.clip_grad_norm_([], 1.0), U.clip_grad_norm_((p for p in []), 1.0))
setg()
U.clip_grad_value_(ps, 1.5)
print(ps[1].grad)
ps[0].grad[0] = float("nan")
T(lambda: U.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True))
print(U.clip_grad_norm_(ps, 1.0), U.get_total_norm([torch.ones(3), torch.ones(2)]), U.get_total_norm([]))
U.clip_grads_with_norm_(ps, 1.0, torch.tensor(2.0))
print(ps[1].grad)
U.clip_grad_norm(ps, 1.0)
v = U.parameters_to_vector(ps)
print(v)
U.vector_to_parameters(v.detach() * 2, ps)
print(ps[1])
T(lambda: U.vector_to_parameters([1], ps))
