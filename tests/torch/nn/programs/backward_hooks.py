# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
log = []


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.u = nn.Parameter(torch.tensor([3.0, 4.0]))

    def forward(self, x, k, y, flag=None):
        return (x * self.w + y, y * self.u, 3)


m = Two()
x = torch.tensor([1.0, 1.0], requires_grad=True)
y = torch.tensor([2.0, 5.0], requires_grad=True)
m.register_full_backward_hook(lambda m, gi, go: log.append(("b", gi, go)))
m.register_full_backward_pre_hook(lambda m, go: log.append(("p", go)))
a, b, c = m(x, "k", y)
print(c)
a.sum().backward()
print(log, x.grad, y.grad, m.w.grad, m.u.grad)
log.clear()
a, b, c = m(x.detach(), "k", y)
(a.sum() + b.sum()).backward()
print(log)
log.clear()
a, b, c = m(x.detach(), "k", y.detach())
(a.sum() + b.sum()).backward()
print(log)
log.clear()
with torch.no_grad():
    m(x, "k", y)
print(log)
m = nn.Linear(2, 2)
m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0,))
m.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
x.grad = None
m(x).sum().backward()
print(x.grad, m.weight.grad)
m = nn.Linear(2, 2)
m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
T(lambda: m(x).sum().backward())
m = nn.Linear(2, 2)
m.register_full_backward_pre_hook(lambda m, gi: (gi[0], gi[0]))
T(lambda: m(x).sum().backward())
m = nn.Linear(2, 2)
m.register_full_backward_hook(lambda m, gi, go: (torch.ones(2),))
T(lambda: m(x.detach()).sum().backward())
m = nn.Linear(2, 2)
m.register_full_backward_hook(lambda m, gi, go: None)
T(lambda: m.register_backward_hook(print))
m = nn.Linear(2, 2)
m.register_backward_hook(lambda m, gi, go: log.append((gi, go)))
T(lambda: m.register_full_backward_hook(print))
m(x).sum().backward()
print(log[0][1])
m = nn.ReLU(inplace=True)
m.register_full_backward_hook(lambda m, gi, go: log.append("relu"))
T(lambda: m(x * 1).sum().backward())


class DD(nn.Module):
    def forward(self, x):
        return {"a": x * 2}


m = DD()
m.register_full_backward_hook(lambda m, gi, go: log.append("dict"))
m(x)["a"].sum().backward()
print(log[-1])
