# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
I = nn.init
for f in (
    "uniform_",
    "normal_",
    "trunc_normal_",
    "ones_",
    "zeros_",
    "eye_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
):
    print(f, getattr(I, f)(torch.empty(4, 5)).flatten()[:6])
print(
    I.trunc_normal_(torch.empty(50), 1.0, 2.0, -1.0, 0.5).sum(),
    I.trunc_normal_(torch.empty(50), 0, 1, 2.0, 3.0).sum(),
    I.constant_(torch.empty(2), 3.0),
    I.dirac_(torch.empty(4, 2, 3), 2),
    I.sparse_(torch.empty(4, 3), 0.5),
    I.orthogonal_(torch.empty(5, 2, 2), gain=2.0)[0],
    I.kaiming_normal_(torch.empty(3, 4), mode="fan_out", nonlinearity="relu")[0],
)
g = torch.Generator().manual_seed(5)
print(
    I.uniform_(torch.empty(2), generator=g),
    I.trunc_normal_(torch.empty(2), generator=g),
    I.sparse_(torch.empty(4, 2), 0.5, generator=g),
)
print(
    [I.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")],
    I.calculate_gain("leaky_relu", 0.2),
)
T(lambda: I.eye_(torch.empty(2)))
T(lambda: I.dirac_(torch.empty(2)))
T(lambda: I.dirac_(torch.empty(3, 2, 1), 2))
T(lambda: I.xavier_uniform_(torch.empty(2)))
T(lambda: I.kaiming_uniform_(torch.empty(2, 2), mode="x"))
T(lambda: I.calculate_gain("x"))
T(lambda: I.calculate_gain("leaky_relu", "x"))
T(lambda: I.sparse_(torch.empty(2), 0.1))
T(lambda: I.orthogonal_(torch.empty(2)))
T(lambda: I.kaiming_uniform_(torch.empty(0, 2)))
T(lambda: I.uniform(torch.empty(2)))
T(lambda: I.trunc_normal_(torch.empty(2), 9.0))
