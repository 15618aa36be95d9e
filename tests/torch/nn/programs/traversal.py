# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, B023
net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()), nn.Linear(3, 2))
net[0].weight2 = net[0].weight
net[1].again = net[0]
print(net)
for a in ({}, {"remove_duplicate": False}, {"prefix": "p"}, {"recurse": False}):
    print([n for n, _ in net.named_parameters(**a)])
print(
    [n for n, _ in net.named_buffers()],
    [n for n, _ in net.named_modules()],
    [n for n, _ in net.named_modules(remove_duplicate=False, prefix="q")],
    [n for n, _ in net.named_children()],
    len(list(net.modules())),
    len(list(net.children())),
)
print(list(net.state_dict()), net.state_dict()._metadata)
print(list(net.state_dict(prefix="a.")), net.state_dict(prefix="a.")._metadata)
print(net.get_submodule("1.0"), net.get_parameter("1.0.weight").shape, net.get_buffer("1.0.running_mean"))
for s in ("1.9", "1.0.weight", "x", ""):
    T(lambda: net.get_submodule(s))
    T(lambda: net.get_parameter(s))
    T(lambda: net.get_buffer(s))
T(lambda: net.get_parameter("1.0.running_mean"))
T(lambda: net.get_buffer("1.0.weight"))
net.set_submodule("1.1", nn.Tanh())
print(net)
T(lambda: net.set_submodule("", nn.Tanh()))
T(lambda: net.set_submodule("1.1", 3))
T(lambda: net.set_submodule("1.new", nn.Tanh(), strict=True))
T(lambda: net.set_submodule("0.weight", nn.Tanh()))
net.set_submodule("1.new", nn.GELU())
print(net)
print(net.train(False).training, net[1].training, net.train().training)
T(lambda: net.train("x"))
net.requires_grad_(False)
print([p.requires_grad for p in net.parameters()])
