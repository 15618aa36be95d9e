# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import importlib

bias = importlib.import_module(nn.__name__ + ".attention.bias")
print(bias.causal_upper_left(2, 3))
print(bias.causal_lower_right(2, 3))
q, k = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
attend = torch.nn.functional.scaled_dot_product_attention
for mask in (bias.causal_upper_left(2, 3), bias.causal_lower_right(2, 3)):
    print(attend(q, k, k, mask))
    print(attend(q, k, k, attn_mask=mask))
T(lambda: attend(q, k, k, bias.causal_upper_left(2, 3), is_causal=True))
T(lambda: bias.causal_upper_left(2))
T(lambda: bias.CausalBias(3, 2, 2))
bias.causal_lower_right(3, 2)
