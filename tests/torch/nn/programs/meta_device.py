# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
k = nn.Linear(2, 2, device="meta")
print(k.weight.device, k.weight.is_meta)
k2 = k.to_empty(device="cpu")
print(k2.weight.device, k2 is k, type(k2.weight).__name__, k2.weight.requires_grad)
T(lambda: nn.Linear(2, 2, device="meta").to("cpu"))
print(nn.Linear(2, 2, device="meta").load_state_dict(nn.Linear(2, 2).state_dict()))
z = nn.Linear(2, 2, device="meta")
z.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)
print(z.weight.device, type(z.weight).__name__)
