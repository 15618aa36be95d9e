# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import copy

p = nn.Parameter(torch.ones(2))
print(
    p,
    repr(nn.Parameter()),
    isinstance(p, nn.Parameter),
    isinstance(torch.ones(1), nn.Parameter),
    p.requires_grad,
    nn.Parameter(torch.ones(1), False).requires_grad,
)
q = copy.deepcopy(p)
print(q is p, q, type(q).__name__)
t = torch.ones(3)
p = nn.Parameter(t)
t[0] = 5
print(p, p.data_ptr() == t.data_ptr())
print(type(p * 2).__name__, type(p.data).__name__, type(p.detach()).__name__, p.is_leaf)
T(lambda: nn.Parameter(torch.tensor([1, 2])))
print(nn.Parameter(torch.tensor([1, 2]), requires_grad=False))
T(lambda: nn.Parameter([1]))
u = nn.parameter.UninitializedParameter()
print(u, nn.parameter.is_lazy(u), nn.parameter.is_lazy(p), isinstance(u, nn.Parameter))
T(lambda: u.shape)
try:
    u + 1
except ValueError as error:
    print(str(error).partition(" in ")[0])
T(lambda: u.share_memory_())
u.materialize((2, 3))
print(type(u).__name__, u.shape)
u = nn.UninitializedBuffer()
print(u)
u.materialize((2,))
print(type(u).__name__)
b = nn.Buffer(torch.ones(2))
print(type(b).__name__, isinstance(b, nn.Buffer), b.persistent, b)
