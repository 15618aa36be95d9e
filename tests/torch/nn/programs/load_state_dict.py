# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import collections

a = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
b = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
print(a.load_state_dict(b.state_dict()), (a[0].weight == b[0].weight).all())
sd = b.state_dict()
del sd["0.bias"]
sd["x"] = torch.ones(1)
sd["0.y.z"] = torch.ones(1)
sd["1.weight"] = torch.ones(4)
T(lambda: a.load_state_dict(sd))
T(lambda: a.load_state_dict(sd, strict=False))
T(lambda: a.load_state_dict([1]))
sd["1.weight"] = torch.ones(3)
print(a.load_state_dict(sd, strict=False))
sd["1.weight"] = "x"
T(lambda: a.load_state_dict(sd, strict=False))
w = b.state_dict()["0.weight"]
r = a.load_state_dict(b.state_dict(), assign=True)
print(
    r,
    a[0].weight.data_ptr() == b[0].weight.data_ptr(),
    a[0].weight.requires_grad,
    isinstance(a[0].weight, nn.Parameter),
)
r.missing_keys.append("q")
print(r)
sd = b.state_dict()
del sd["1.num_batches_tracked"]
sd._metadata.clear()
print(a.load_state_dict(sd))
sd = b.state_dict(keep_vars=True)
print(sd["0.weight"] is b[0].weight)
d = collections.OrderedDict()
print(list(b.state_dict(destination=d)), d is b.state_dict(destination=d))
print(list(b.state_dict(d, "pre.", True)))
