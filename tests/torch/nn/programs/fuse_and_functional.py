# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
m = nn.Linear(2, 2)
c = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3))
c(torch.randn(4, 2, 5, 5))
c.eval()
x = torch.randn(1, 2, 5, 5)
f = nn.utils.fuse_conv_bn_eval(c[0], c[1])
print((f(x) - c(x)).abs().max() < 1e-05, f.bias)
T(lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)))
l = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
f = nn.utils.fuse_linear_bn_eval(l[0], l[1])
print(f.weight)
fc = nn.utils.stateless._functional_call
net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
w = torch.ones(2, 2, requires_grad=True)
bufs = {"1.running_mean": torch.zeros(2)}
out = fc(net, {"0.weight": w, **bufs}, torch.randn(3, 2))
out.pow(3).sum().backward()
print(w.grad, net[0].weight.grad, net[1].running_mean)
net.tied = net[0]
print([n for n, _ in net.named_parameters(remove_duplicate=False)])
T(lambda: fc(net, {"zz": w}, torch.randn(3, 2), strict=True))
T(lambda: fc(net, {"0.weight": w, "tied.weight": w * 2}, torch.randn(3, 2)))
print(nn.utils.stateless.functional_call(m, {"weight": torch.eye(2)}, torch.ones(1, 2)))
s = nn.SyncBatchNorm.convert_sync_batchnorm(
    nn.Sequential(nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(3, affine=False)))
)
print(s)
d = nn.DataParallel(nn.Linear(2, 2))
print(d, list(d.state_dict()))
print(nn.modules.utils._pair(3), nn.modules.utils._triple((1, 2, 3)), nn.modules.utils._reverse_repeat_tuple((1, 2), 2))
sd = {"module.a": 1, "b": 2}
nn.modules.utils.consume_prefix_in_state_dict_if_present(sd, "module.")
print(sd)
with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
    pass
T(lambda: nn.attention.sdpa_kernel(3).__enter__())
print(nn.attention.SDPBackend.MATH, sorted(nn.factory_kwargs({"device": "cpu", "dtype": None})))
T(lambda: nn.factory_kwargs({"a": 1}))
print(
    nn.grad.conv2d_input((1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)),
    nn.grad.conv1d_weight(torch.ones(1, 1, 4), (1, 1, 2), torch.ones(1, 1, 3)),
) if hasattr(nn, "grad") else print("none")
print(sorted(n for n in nn.modules.__all__))
