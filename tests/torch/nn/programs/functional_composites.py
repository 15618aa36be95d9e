# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
F = torch.nn.functional
x = torch.randn(3, 4, requires_grad=True)
print(F.gumbel_softmax(x, tau=0.7))
hard = F.gumbel_softmax(x, hard=True, dim=0)
print(hard)
(hard * torch.arange(4.0)).sum().backward()
print((x.grad.abs() < 1e-5).all())
weight = torch.randn(5, 4)
target = torch.tensor([0, 4, 2])
print(F.linear_cross_entropy(x, weight, target, linear_bias=torch.ones(5), ignore_index=4))
print(F.linear_cross_entropy(x, weight, torch.randn(3, 5).softmax(1), reduction="none", label_smoothing=0.2).detach())
loss = F.linear_cross_entropy(x, weight, target, weight=torch.rand(5), options=nn.LinearCrossEntropyOptions())
print(loss.item())
q = torch.randn(3, 2, 4)
packed, bias, out = torch.randn(12, 4), torch.randn(12), torch.randn(4, 4)
output, weights = F.multi_head_attention_forward(
    q, q, q, 4, 2, packed, bias, None, None, False, 0.0, out, None, static_k=torch.randn(4, 3, 2)
)
print(output)
print(weights)
