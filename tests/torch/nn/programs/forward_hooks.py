# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
log = []
m = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
x = torch.ones(1, 2)
h = [
    m.register_forward_pre_hook(lambda mod, a: log.append("pre1")),
    m.register_forward_pre_hook(lambda mod, a: log.append("pre0") or (a[0] * 2,), prepend=True),
    m.register_forward_hook(lambda mod, a, o: log.append("post") or o + 1),
    m[0].register_forward_hook(lambda mod, a, k, o: log.append(("kw", k)), with_kwargs=True),
]
print(m(x))
print(log)
log.clear()
for i in h:
    i.remove()
print(m(x), log)
m.register_forward_pre_hook(lambda mod, a, k: ((a[0] + 1,), k), with_kwargs=True)
print(m(x))
m.register_forward_pre_hook(lambda mod, a, k: 3, with_kwargs=True)
T(lambda: m(x))
m = nn.Linear(2, 3)
m.register_forward_pre_hook(lambda mod, a: a[0] + 1)
print(m(x))
m.register_forward_hook(lambda mod, a, o: log.append(("always", o)), always_call=True)
m.register_forward_hook(lambda mod, a, o: log.append("never"))
T(lambda: m(torch.ones(1, 7)))
print(log)
print(m(x))
print(log[-2][0], log[-1])


def bad(mod, a, o):
    raise ValueError("in hook")


m.register_forward_hook(bad, always_call=True)
T(lambda: m(x))
T(lambda: m(torch.ones(1, 7)))
