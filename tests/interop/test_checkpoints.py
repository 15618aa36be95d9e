"""Checkpoint files and tensors from one library's form into the other's."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn

from msadapter_hook.interop import convert_file, convert_tensor
from msadapter_hook.interop.checkpoints import map_names

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.uint8, torch.bool, torch.complex64, torch.complex128]


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(3, 3), torch.nn.LayerNorm(3),
                               torch.nn.Embedding(4, 3))


def test_there_and_back(tmp_path):
    net = network()
    there, ckpt, back = tmp_path / "a.pth", tmp_path / "b.ckpt", tmp_path / "c.pth"
    others = {f"kind{i}": torch.tensor([0, 1, 2]).to(t) for i, t in enumerate(DTYPES)}
    torch.save({"epoch": 3, "state_dict": {**net.state_dict(), **others}}, there)
    report = convert_file(there, ckpt, embeddings=["4"])
    assert report.renamed["1.running_var"] == "1.moving_variance" and report.renamed["3.weight"] == "3.gamma"
    assert report.renamed["4.weight"] == "4.embedding_table" and "epoch" in report.left_out
    assert "4.weight" not in report.unsure
    assert "7 renamed" in str(report)
    again = convert_file(ckpt, back)
    assert not again.left_out
    loaded = torch.load(back)
    for name, value in {**net.state_dict(), **others}.items():
        assert loaded[name].dtype is value.dtype and torch.equal(loaded[name], value), name
    network().load_state_dict({k: loaded[k] for k in net.state_dict()})


def test_a_native_network_takes_the_file(tmp_path):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    net(torch.randn(4, 1, 5, 5))
    torch.save(net.state_dict(), tmp_path / "a.pt")
    convert_file(tmp_path / "a.pt", tmp_path / "a.ckpt")
    native = nn.SequentialCell(nn.Conv2d(1, 2, 3, pad_mode="valid", has_bias=True), nn.BatchNorm2d(2))
    missing, _ = ms.load_param_into_net(native, ms.load_checkpoint(str(tmp_path / "a.ckpt")))
    assert missing == []
    native.set_train(False)
    net.eval()
    x = torch.randn(2, 1, 6, 6)
    np.testing.assert_allclose(native(ms.Tensor(x.numpy())).asnumpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_names_that_cannot_be_told_are_reported():
    from msadapter_hook.interop.checkpoints import Report

    report = Report()
    mapped = map_names({"a.weight": (4, 3), "b.weight": (4, 3), "b.bias": (4,), "c.weight": (3,)}, "mindspore", (), report)
    assert mapped == {"a.weight": "a.weight", "b.weight": "b.weight", "b.bias": "b.bias", "c.weight": "c.gamma"}
    assert set(report.unsure) == {"a.weight", "c.weight"}


def test_the_command(checkout, tmp_path):
    torch.save({"model": {"w": torch.ones(2)}, "optimizer": {}}, tmp_path / "in.pth")
    text = checkout.output("-m", "msadapter_hook", "convert", "in.pth", "out.ckpt", cwd=tmp_path)
    assert "0 renamed, 1 kept, 1 left out" in text
    assert ms.load_checkpoint(str(tmp_path / "out.ckpt"))["w"].asnumpy().tolist() == [1, 1]
    text = checkout.output("-m", "msadapter_hook", "convert", "out.ckpt", "back.pth", "--names", "keep", cwd=tmp_path)
    assert torch.load(tmp_path / "back.pth")["w"].tolist() == [1, 1]
    assert checkout("-m", "msadapter_hook", "convert", "nothing.pth", "a.ckpt", cwd=tmp_path).returncode == 2
    wrong = checkout("-m", "msadapter_hook", "convert", "in.pth", "out.pth", cwd=tmp_path)
    assert wrong.returncode == 1 and "one of the two must be a .ckpt" in wrong.stderr


class Elsewhere:
    """A tensor of another torch, as far as conversion looks at it."""

    dtype = "torch.float32"

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    cpu = detach

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("to, kind", [("torch", torch.Tensor), ("ms", ms.Tensor), ("numpy", np.ndarray)])
def test_convert_tensor(to, kind):
    array = np.arange(3, dtype=np.float32)
    for given in (torch.arange(3.0), torch.arange(3.0, requires_grad=True), ms.Tensor(array), array, Elsewhere(array)):
        made = convert_tensor(given, to)
        assert isinstance(made, kind) and np.asarray(convert_tensor(made, "numpy")).tolist() == [0, 1, 2]


def test_convert_tensor_shares_memory_and_refuses_the_rest():
    array = np.zeros(3, np.float32)
    ours = convert_tensor(array)
    array[0] = 5
    assert ours.tolist() == [5, 0, 0]
    low = torch.ones(2, dtype=torch.bfloat16)
    assert torch.equal(convert_tensor(convert_tensor(low, "ms")), low)
    with pytest.raises(ValueError, match="expected 'torch', 'ms' or 'numpy'"):
        convert_tensor(ours, "jax")
    with pytest.raises(TypeError, match="no tensor"):
        convert_tensor("text")
