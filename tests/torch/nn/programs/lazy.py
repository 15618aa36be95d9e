# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import copy

m = nn.LazyLinear(3)
print(m, m.state_dict())
m2 = nn.LazyLinear(3)
m2.load_state_dict(nn.Linear(4, 3).state_dict())
print(m2.weight.shape, m2)
print(m2(torch.ones(1, 4)).shape, m2)
T(lambda: nn.Linear(4, 3).load_state_dict(m.state_dict()))
c = copy.deepcopy(m)
print(c.weight)
m(torch.ones(2, 5))
print(m, m._forward_pre_hooks, m._load_state_dict_pre_hooks, list(vars(m))[-6:])
n = nn.Sequential(nn.LazyConv2d(2, 1), nn.LazyBatchNorm2d(), nn.ReLU())
n(torch.ones(2, 3, 2, 2))
print(n)
print(m.cls_to_become if hasattr(m, "cls_to_become") else None)
