# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
m = nn.Linear(2, 3)


def f():
    m.weight = torch.ones(3, 2)


T(f)


def f():
    m.weight = None


T(f)
print(m, list(m.state_dict()))


def f():
    m.weight = 3


T(f)
m = nn.Sequential(nn.Linear(1, 1))
m.bn = nn.BatchNorm1d(2)


def f():
    m.bn = 3


T(f)


def f():
    m.bn = None


T(f)
print(m, list(m.state_dict()))
m = nn.BatchNorm1d(2)


def f():
    m.running_mean = 3


T(f)
m.running_mean = torch.ones(2)
print(list(m.state_dict()))
m.running_mean = None
print(list(m.state_dict()), m.foo if hasattr(m, "foo") else "none")
T(lambda: m.foo)
m.foo = torch.ones(2)
print("foo" in m.state_dict())
m.foo = nn.Parameter(torch.ones(2))
print("foo" in m.state_dict(), "foo" in m.__dict__)
m.foo = nn.Linear(1, 1)
print(m)
del m.foo
T(lambda: m.foo)


def f():
    del m.nothing


T(f)
m.b = nn.Buffer(torch.ones(3), persistent=False)
print(list(m.state_dict()), isinstance(m.b, nn.Buffer), [n for n, _ in m.named_buffers()])
m.b = nn.Buffer(torch.ones(3))
print(list(m.state_dict()))
m.b = torch.zeros(3)
print(list(m.state_dict()), m.b)
print(sorted(set(dir(m)) - set(dir(nn.Module()))))
