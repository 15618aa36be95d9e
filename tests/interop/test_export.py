"""MindIR files of served modules: written from the recorded program, loaded and run by MindSpore alone."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn

from msadapter_hook.interop import as_cell


def load_and_run(path, *inputs):
    return nn.GraphCell(ms.load(str(path)))(*[ms.Tensor(i.numpy()) for i in inputs])


def lenet():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(64, 10))


@pytest.mark.parametrize("wrap", [lambda m: m, as_cell], ids=["module", "cell"])
def test_mindir_of_a_convolutional_network(tmp_path, wrap):
    net = lenet()
    net(torch.randn(8, 1, 8, 8))  # statistics
    ms.export(wrap(net), torch.zeros(2, 1, 8, 8), file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert net.training
    net.eval()
    x = torch.randn(2, 1, 8, 8)
    result = load_and_run(tmp_path / "net.mindir", x)
    np.testing.assert_allclose(result.asnumpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_not_recorded_is_refused(tmp_path):
    class Masked(torch.nn.Module):
        def forward(self, x):
            mask = (x.detach() > 0).float()  # no gradient flows: not recorded
            return x * mask

    with pytest.raises(NotImplementedError, match=r"mindspore\.export"):
        ms.export(Masked(), torch.randn(3), file_name=str(tmp_path / "m"), file_format="MINDIR")
    assert not (tmp_path / "m.mindir").exists()


def test_host_kernels_are_refused_by_name(tmp_path):
    class Spectral(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft(x).abs()

    with pytest.raises(NotImplementedError, match="no MindSpore primitive"):
        ms.export(Spectral(), torch.randn(4), file_name=str(tmp_path / "m"), file_format="MINDIR")


def test_native_cells_are_exported_as_ever(tmp_path):
    dense = nn.Dense(2, 2)
    ms.export(dense, ms.Tensor(np.ones((1, 2), np.float32)), file_name=str(tmp_path / "d"), file_format="MINDIR")
    x = torch.randn(1, 2)
    np.testing.assert_allclose(load_and_run(tmp_path / "d.mindir", x).asnumpy(), dense(ms.Tensor(x.numpy())).asnumpy(), rtol=1e-5)
