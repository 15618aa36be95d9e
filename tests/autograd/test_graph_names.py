"""The graph as users walk it: names and edges are PyTorch's, whatever is recorded underneath."""

import pytest
import torch
import torch.nn.functional as F


def shown(fn, depth=4):
    """A node and what is below it, as text."""
    if fn is None:
        return "None"
    name = fn.name().replace("torch::autograd::", "")
    if not depth or not fn.next_functions:
        return name
    return f"{name}[{', '.join(shown(f, depth - 1) for f, _ in fn.next_functions)}]"


def leaf(*size):
    return torch.randn(size, requires_grad=True)


def weights():
    return leaf(2, 3), leaf(2)


M, A, C = leaf(3, 3), leaf(3), leaf(2, 3, 4, 4)
NAMED = [
    (lambda: torch.block_diag(M, A), "BlockDiagBackward0"), (lambda: torch.diag(A, 1), "DiagEmbedBackward0"),
    (lambda: torch.diag(M), "DiagonalBackward0_copy"), (lambda: torch.diagflat(M), "DiagEmbedBackward0"),
    (lambda: torch.trapezoid(A), "MulBackward1"), (lambda: torch.trapezoid(A, torch.arange(3.0)), "DivBackward1"),
    (lambda: torch.cumulative_trapezoid(A, torch.arange(3.0)), "DivBackward1"),
    (lambda: torch.slice_scatter(M, A[None], 0, 0, 1), "SliceScatterBackward0"), (lambda: torch.vander(A), "FlipBackward0"),
    (lambda: torch.vander(A, increasing=True), "CopySlices"), (lambda: torch.linalg.vander(A), "CatBackward0"),
    (lambda: torch.normal(A, 1.0), "NormalBackward1"), (lambda: torch.normal(0.0, A.abs()), "NormalBackward2"),
    (lambda: torch.normal(A, A.abs()), "NormalBackward3"), (lambda: A.clone().fill_(torch.tensor(2.0)), "FillBackward3"),
    (lambda: A.clone().fill_(A[0]), "FillBackward3"), (lambda: A.clone().fill_(2.0), "FillBackward2"),
    (lambda: F.adaptive_avg_pool2d(C, 1), "MeanBackward1"), (lambda: F.adaptive_avg_pool2d(C, 2), "AdaptiveAvgPool2DBackward0"),
    (lambda: F.adaptive_avg_pool3d(C, (1, 2, 1)), "AdaptiveAvgPool3DBackward0"), (lambda: F.adaptive_avg_pool3d(C, 1), "MeanBackward1"),
    (lambda: F.affine_grid(leaf(1, 2, 3), (1, 1, 2, 2), align_corners=False), "AffineGridGeneratorBackward0"),
]


@pytest.mark.parametrize("make, name", NAMED)
def test_operators_made_of_others_bear_pytorchs_name(make, name):
    out = make()
    assert type(out.grad_fn).__name__ == name
    out.sum().backward()


PRODUCTS = [
    ((3,), "ViewBackward0[AddmmBackward0[AccumulateGrad, ViewBackward0[AccumulateGrad], TBackward0[AccumulateGrad]]]",
     "SqueezeBackward4[MmBackward0[UnsqueezeBackward0[AccumulateGrad], TBackward0[AccumulateGrad]]]",
     "SqueezeBackward4[MmBackward0[UnsqueezeBackward0[AccumulateGrad], AccumulateGrad]]"),
    ((4, 3), "AddmmBackward0[AccumulateGrad, AccumulateGrad, TBackward0[AccumulateGrad]]",
     "MmBackward0[AccumulateGrad, TBackward0[AccumulateGrad]]", "MmBackward0[AccumulateGrad, AccumulateGrad]"),
    ((5, 4, 3), "ViewBackward0[AddmmBackward0[AccumulateGrad, ViewBackward0[AccumulateGrad], TBackward0[AccumulateGrad]]]",
     "UnsafeViewBackward0[MmBackward0[ViewBackward0[AccumulateGrad], TBackward0[AccumulateGrad]]]",
     "UnsafeViewBackward0[MmBackward0[ViewBackward0[AccumulateGrad], AccumulateGrad]]"),
]


@pytest.mark.parametrize("size, with_bias, without, product", PRODUCTS, ids=[str(row[0]) for row in PRODUCTS])
def test_products_show_the_steps_they_are_made_of(size, with_bias, without, product):
    w, b = weights()
    x = leaf(*size)
    assert shown(F.linear(x, w, b).grad_fn) == with_bias
    assert shown(F.linear(x, w).grad_fn) == without
    assert shown((x @ leaf(3, 2)).grad_fn) == product


def test_linear_of_data_has_an_edge_to_nothing():
    w, b = weights()
    assert shown(F.linear(torch.randn(4, 3), w, b).grad_fn) == "AddmmBackward0[AccumulateGrad, None, TBackward0[AccumulateGrad]]"


def test_loss_leads_to_the_bias_of_the_last_layer():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    fn = F.mse_loss(net(torch.randn(5, 3)), torch.zeros(5, 2)).grad_fn
    last = fn.next_functions[0][0]
    assert last.name() == "AddmmBackward0" and last.next_functions[0][0].variable is net[2].bias
    assert last.next_functions[1][0].name() == "ReluBackward0"


def test_cross_entropy_shows_its_softmax():
    x = leaf(4, 3)
    assert shown(F.cross_entropy(x, torch.tensor([0, 1, 2, 0])).grad_fn) == "NllLossBackward0[LogSoftmaxBackward0[AccumulateGrad]]"
    logs = F.log_softmax(x, 1)
    assert shown(F.nll_loss(logs, torch.tensor([0, 1, 2, 0])).grad_fn) == "NllLossBackward0[LogSoftmaxBackward0[AccumulateGrad]]"


def test_constants_inside_of_an_operator_do_not_show():
    x = leaf(3)
    assert shown((x * 2).grad_fn) == "MulBackward0[AccumulateGrad, None]"
    assert shown(torch.add(x, leaf(3), alpha=2).grad_fn) == "AddBackward0[AccumulateGrad, AccumulateGrad]"
    assert shown(torch.deg2rad(x).grad_fn) == "Deg2RadBackward0[AccumulateGrad]"
    assert shown(torch.permute_copy(leaf(2, 3), (1, 0)).grad_fn) == "PermuteBackward0_copy[AccumulateGrad]"
    assert shown(leaf(2, 3).unfold(0, 2, 1).grad_fn) == "UnfoldBackward0[AccumulateGrad]"


PRODUCT = "MulBackward0[AccumulateGrad, None]"


def written(change):
    """The graphs of a tensor and, where there is one, of its view after a write."""
    x, w = leaf(4, 3), leaf(2, 3)
    y = x * 1
    view = change(y, w, x)
    return shown(y.grad_fn) if view is None else (shown(view.grad_fn), shown(y.grad_fn))


def test_write_to_a_part_is_copy_slices():
    def assigned(y, w, x):
        y[0] = 3

    def multiplied(y, w, x):
        y[0, 0] = w[0, 0]

    assert written(assigned) == f"CopySlices[{PRODUCT}, None]"
    assert written(multiplied) == f"CopySlices[{PRODUCT}, SelectBackward0[SelectBackward0[AccumulateGrad]]]"


def test_view_after_a_write_is_a_window_of_the_base():
    def through(y, w, x):
        view = y[0]
        view.mul_(2)
        return view

    def whole(y, w, x):
        view = y.view(12)
        view.add_(1)
        return view

    def below(y, w, x):
        view = y.view(12)[2:]
        y.mul_(2)
        return view

    assert written(through) == (f"AsStridedBackward0[CopySlices[{PRODUCT}, None]]", f"CopySlices[{PRODUCT}, None]")
    assert written(whole) == (f"AsStridedBackward0[CopySlices[{PRODUCT}, None]]", f"CopySlices[{PRODUCT}, None]")
    assert written(below) == (f"AsStridedBackward0[MulBackward0[{PRODUCT}, None]]", f"MulBackward0[{PRODUCT}, None]")


def test_write_to_data_that_needed_no_gradient():
    x = leaf(4, 3)
    y = torch.zeros(3)
    view = y[:2]
    view.copy_(x[0, :2])
    graph = "CopySlices[None, SliceBackward0[SelectBackward0[AccumulateGrad]]]"
    assert (shown(view.grad_fn), shown(y.grad_fn)) == (f"AsStridedBackward0[{graph}]", graph)


def test_step_inside_of_an_operator_takes_no_hooks():
    w, b = weights()
    step = F.linear(leaf(4, 3), w, b).grad_fn.next_functions[2][0]
    with pytest.raises(NotImplementedError, match="TBackward0"):
        step.register_hook(print)


def test_steps_that_pytorch_has_bear_its_names():
    c, seq, four = torch.randn(3, dtype=torch.complex64, requires_grad=True), leaf(5, 2, 3), leaf(2, 1, 5, 4)
    assert shown(c.real.grad_fn) == shown(torch.imag(c).grad_fn) == "SelectBackward0[ViewAsRealBackward0[AccumulateGrad]]"
    assert shown(M.t().reshape(9).grad_fn) == "UnsafeViewBackward0[CloneBackward0[TBackward0[AccumulateGrad]]]"
    assert type(torch.nn.LSTM(3, 4)(seq)[0].grad_fn).__name__ == "MkldnnRnnLayerBackward0"
    assert type(torch.nn.GRU(3, 4)(seq)[0].grad_fn).__name__ == type(torch.nn.RNN(3, 4)(seq)[0].grad_fn).__name__ == "StackBackward0"
    fused = F.scaled_dot_product_attention(four, four, four, is_causal=True)
    assert shown(fused.grad_fn).startswith("ScaledDotProductFlashAttentionForCpuBackward0[AccumulateGrad")
    for x, name in ((four[0], "UnsafeViewBackward0"), (four[0, 0], "MmBackward0")):
        assert type(F.scaled_dot_product_attention(x, x, x).grad_fn).__name__ == name
    masked = F.scaled_dot_product_attention(four, four, four, attn_mask=leaf(5, 5))
    assert type(masked.grad_fn).__name__ == "UnsafeViewBackward0"


@pytest.mark.parametrize("change, name", [
    (lambda y: y.t_(), "TBackward1"), (lambda y: y.unsqueeze_(0), "UnsqueezeBackward1"), (lambda y: y.squeeze_(), "SqueezeBackward3"),
    (lambda y: y.squeeze_(0), "SqueezeBackward4"), (lambda y: y.squeeze_((0, 1)), "SqueezeBackward5"),
    (lambda y: y.transpose_(0, 1), "TransposeBackward1"), (lambda y: y.as_strided_((2, 2), (1, 1)), "AsStridedBackward1")])
def test_a_tensor_that_changes_its_own_geometry(change, name):
    assert type(change(leaf(3, 4) * 1).grad_fn).__name__ == name
    assert type(change((leaf(3, 4) * 1)[:2]).grad_fn).__name__ == name


@pytest.mark.parametrize("start", [lambda y: torch.view_as_complex(y), lambda y: torch.view_as_complex(y).real])
def test_a_view_of_a_view_that_changes_its_own_geometry(start):
    """What it shows is read from what it was, not from the view it came of."""
    x = torch.arange(8.0).view(4, 2).requires_grad_()
    y = x * 1
    v = start(y)
    v.unsqueeze_(0)
    v.transpose_(0, 1)
    assert v.shape == (4, 1) and v.dtype == start(y).dtype and torch.equal(v[:, 0].detach(), start(y).detach())
    v.mul_(2)
    (y**2).sum().backward()
    scale = torch.tensor([4.0, 4.0 if v.is_complex() else 1.0])
    assert torch.equal(x.grad, 2 * x.detach() * scale)


def test_names_of_classes_of_nodes():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = Twice.apply(A)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "TwiceBackward"
    y = A * 1
    y[0] = 3.0
    assert repr(y).endswith("grad_fn=<CopySlices>)") and y.grad_fn.name() == "torch::autograd::CopySlices"
