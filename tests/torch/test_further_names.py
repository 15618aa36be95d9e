"""Names that few programs use: what they give, against recorded values, and what they refuse."""

import pytest
import torch
from torch import nn


def test_fake_quantization_rounds_to_the_grid_and_passes_the_gradient_where_nothing_is_clamped():
    x = torch.tensor([0.04, 1.26, 100.0, -50.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
    assert torch.allclose(y, torch.tensor([0.0, 1.3, 25.2, -0.3]))
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0]
    by_tensors = torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), 0, 255)
    assert torch.equal(by_tensors, y)


def test_fake_quantization_by_channel():
    x = torch.tensor([[0.04, 1.26], [100.0, -50.0]])
    y = torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.5]), torch.tensor([0, 5], dtype=torch.int32), 0, 0, 255)
    assert torch.allclose(y, torch.tensor([[0.0, 1.3], [100.0, -2.5]]))
    with pytest.raises(RuntimeError, match="not consistent"):
        torch.fake_quantize_per_channel_affine(x, torch.ones(3), torch.zeros(3, dtype=torch.int32), 0, 0, 255)


def test_lobpcg_gives_the_outermost_eigenpairs():
    torch.manual_seed(0)
    a = torch.randn(12, 12, dtype=torch.float64)
    a, b = a + a.T, torch.eye(12, dtype=torch.float64) * 2
    values, vectors = torch.lobpcg(a, k=3)
    assert torch.allclose(values, torch.linalg.eigvalsh(a).flip(0)[:3])
    assert torch.allclose(a @ vectors, vectors * values)
    values, vectors = torch.lobpcg(a.to_sparse(), k=2, B=b, largest=False)
    assert torch.allclose(a @ vectors, b @ vectors * values)
    with pytest.raises(ValueError, match="3 x the number"):
        torch.lobpcg(torch.eye(3), k=2)
    with pytest.raises(NotImplementedError, match="tracker"):
        torch.lobpcg(a, k=2, tracker=print)


def test_cond_takes_one_branch():
    x = torch.ones(2)
    assert torch.cond(x.sum() > 1, lambda t: t + 1, lambda t: t - 1, (x,)).tolist() == [2, 2]
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    with pytest.raises(RuntimeError, match="single-element"):
        torch.cond(torch.ones(2) > 0, lambda: 1, lambda: 2)


def test_tensor_over_a_file(tmp_path):
    path = tmp_path / "numbers"
    torch.arange(4.0).numpy().tofile(path)
    private = torch.from_file(str(path), size=4)
    private[0] = 9
    assert torch.from_file(str(path), size=4).tolist() == [0, 1, 2, 3]
    shared = torch.from_file(str(path), shared=True, size=6)
    shared[5] = 7
    assert torch.from_file(str(path), size=6).tolist() == [0, 1, 2, 3, 0, 7]


def test_rare_methods_of_tensors():
    x = torch.ones(1, 2, 3, 4)
    assert x.dim_order() == (0, 1, 2, 3)
    assert x.to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)
    assert x.grad_dtype is torch.float32
    assert x.int().dequantize().dtype is torch.float32
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.ones(2, 3).resize(3, 2).shape == (3, 2)
    with pytest.raises(RuntimeError, match="6 elements"), pytest.warns(UserWarning):
        torch.ones(2, 3).resize(4, 2)


@pytest.mark.parametrize("use", [
    lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), lambda: torch.ones(2).int_repr(),
    lambda: torch.cudnn_convolution(torch.ones(2)), lambda: torch.mkldnn_max_pool2d(torch.ones(2), 2), lambda: torch.ones(2).to_mkldnn()])
def test_what_is_refused_says_what_to_do(use):
    with pytest.raises(NotImplementedError, match="is not supported by msadapter_hook: "):
        use()


def test_batch_norms_without_running_statistics():
    net = torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    assert net[1].running_mean is None and not net[1].track_running_stats
    assert net.eval()(torch.randn(4, 2)).mean(0).abs().max() < 1e-5


def test_pieces_of_checkpoint():
    from torch.utils import checkpoint

    x = torch.ones(2, requires_grad=True)
    cut, number = checkpoint.detach_variable((x * 2, 3))
    assert cut.is_leaf and cut.requires_grad and number == 3
    with pytest.warns(UserWarning, match="Gradients will be None"):
        checkpoint.check_backward_validity([torch.ones(2)])
    assert [p.name for p in checkpoint.CheckpointPolicy][:2] == ["MUST_SAVE", "PREFER_SAVE"]


def test_autocast_under_older_names():
    torch.set_autocast_cpu_dtype(torch.float16)
    assert torch.get_autocast_dtype("cpu") is torch.float16
    torch.set_autocast_cpu_dtype(torch.bfloat16)
    assert [torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()] == [1, 0]
    assert not torch.is_autocast_ipu_enabled()
