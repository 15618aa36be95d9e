# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
log = []
M = nn.modules.module
h = [
    M.register_module_forward_pre_hook(lambda m, a: log.append(("gpre", type(m).__name__))),
    M.register_module_forward_hook(lambda m, a, o: log.append(("gpost", type(m).__name__))),
    M.register_module_forward_hook(lambda m, a, k, o: log.append(("gpostk", k)), with_kwargs=True, always_call=True),
]
m = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
m(torch.ones(1, 2))
print(log)
log.clear()
for i in h:
    i.remove()
m(torch.ones(1, 2))
print(log)
h = [
    M.register_module_buffer_registration_hook(lambda m, n, b: log.append(("buf", n))),
    M.register_module_module_registration_hook(lambda m, n, b: log.append(("mod", n, type(b).__name__))),
    M.register_module_parameter_registration_hook(lambda m, n, b: log.append(("par", n))),
]
nn.Sequential(nn.BatchNorm1d(2), nn.Linear(1, 1, bias=False))
print(log)
log.clear()
for i in h:
    i.remove()
h = [
    M.register_module_full_backward_hook(lambda m, gi, go: log.append((type(m).__name__, gi, go))),
    M.register_module_full_backward_pre_hook(lambda m, go: log.append((type(m).__name__, go))),
]
m(torch.ones(1, 2, requires_grad=True)).sum().backward()
print(log)
T(lambda: M.register_module_backward_hook(lambda *a: None))
for i in h:
    i.remove()
