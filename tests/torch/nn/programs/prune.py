# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import importlib

pr = importlib.import_module(nn.__name__ + ".utils.prune")
m = nn.Linear(4, 3)
pr.random_unstructured(m, "weight", 0.3)
pr.l1_unstructured(m, "bias", 1)
print(
    m.weight, m.bias, list(m.state_dict()), pr.is_pruned(m), [type(h).__name__ for h in m._forward_pre_hooks.values()]
)
pr.ln_structured(m, "weight", 1, 2, 0)
pr.identity(m, "weight")
print(m.weight, [type(h).__name__ for h in m._forward_pre_hooks.values()])
pr.remove(m, "weight")
print(m.weight, list(m.state_dict()), pr.is_pruned(m))
T(lambda: pr.remove(m, "weight"))
m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
pr.global_unstructured([(m[0], "weight"), (m[1], "weight")], pr.L1Unstructured, amount=0.4)
print(m[0].weight_mask, m[1].weight_mask)
pr.custom_from_mask(m[0], "bias", torch.tensor([1, 0, 1]))
print(m[0].bias)
T(lambda: pr.l1_unstructured(nn.Linear(2, 2), "weight", 99))
T(lambda: pr.l1_unstructured(nn.Linear(2, 2), "weight", -1))
T(lambda: pr.l1_unstructured(nn.Linear(2, 2), "weight", "a"))
T(lambda: pr.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0))
T(lambda: pr.random_structured(nn.Linear(2, 2), "weight", 1, 7))
T(lambda: pr.global_unstructured(3, pr.L1Unstructured))
print(
    pr.L1Unstructured(2).prune(torch.arange(4.0)),
    pr.RandomStructured(1, 1).prune(torch.ones(3, 3)),
    pr.LnStructured(1, 1, -1).prune(torch.arange(6.0).view(2, 3)),
)
