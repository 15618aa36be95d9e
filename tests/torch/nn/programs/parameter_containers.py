# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
l = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
print(l, len(l), l[0], l[-1], l[:1])
l.append(torch.ones(3))
l.extend([torch.ones(1)])
l += [torch.ones(2, 2)]
l[0] = torch.zeros(2)
print(l, [n for n, _ in l.named_parameters()])
T(lambda: l[9])
T(lambda: l(1))
T(lambda: l.extend(torch.ones(2)))
print(list(l.state_dict()))
d = nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.zeros(1))})
print(d, list(d), len(d), "a" in d, d["a"], list(d.keys()))
d["c"] = torch.ones(1)
d["s"] = "str"
print(
    d,
    [n for n, _ in d.named_parameters()],
    d.pop("b"),
    d.popitem(),
    d.get("zz", 5),
    d.setdefault("q", torch.ones(1)),
    d.copy(),
    list(reversed(d)),
)
print(d | {"n": torch.ones(1)})
T(lambda: d["nope"])
T(lambda: d.update(3))
T(lambda: d(1))
del d["q"]
print(list(d.items()), d.fromkeys(["x", "y"], torch.ones(1)))
T(lambda: d.__setitem__(3, torch.ones(1)))
