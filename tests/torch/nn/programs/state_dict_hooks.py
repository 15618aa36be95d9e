# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
log = []
m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
m.register_state_dict_pre_hook(lambda mod, prefix, kv: log.append(("pre", type(mod).__name__, prefix, kv)))
m[0].register_state_dict_post_hook(lambda mod, sd, prefix, meta: log.append(("post", list(sd), prefix, meta)))
m._register_state_dict_hook(lambda mod, sd, prefix, meta: {"only": 1})
print(m.state_dict())
print(log)
log.clear()
m[0].register_load_state_dict_pre_hook(
    lambda mod, sd, prefix, *a: log.append((type(mod).__name__, sorted(sd), prefix, a))
)
m.register_load_state_dict_post_hook(lambda mod, k: log.append((type(mod).__name__, str(k))) or k.missing_keys.clear())
print(m.load_state_dict({"0.weight": torch.ones(2, 2)}))
print(log)
m[0].register_state_dict_post_hook(lambda *a: 3)
T(lambda: nn.Module.state_dict(m[0]))
m.register_load_state_dict_post_hook(lambda mod, k: 3)
T(lambda: m.load_state_dict({}, strict=False))
