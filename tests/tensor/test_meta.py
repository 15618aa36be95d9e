"""Tensors of the device "meta": shapes, dtypes and strides follow, data never. Texts and values are PyTorch's."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F


@pytest.fixture
def m():
    return torch.ones(3, device="meta")


@pytest.mark.parametrize(("make", "text"), [
    (lambda m: m, "tensor(..., device='meta', size=(3,))"),
    (lambda m: m + torch.tensor(1.0), "tensor(..., device='meta', size=(3,))"),
    (lambda m: m.sum(), "tensor(..., device='meta', size=())"),
    (lambda m: m == m, "tensor(..., device='meta', size=(3,), dtype=torch.bool)"),
    (lambda m: m.argmax(), "tensor(..., device='meta', size=(), dtype=torch.int64)"),
    (lambda m: m.to(torch.float64), "tensor(..., device='meta', size=(3,), dtype=torch.float64)"),
    (lambda m: m.view(torch.int32), "tensor(..., device='meta', size=(3,), dtype=torch.int32)"),
    (lambda m: m[torch.tensor([0, 1])], "tensor(..., device='meta', size=(2,))"),
    (lambda m: torch.multinomial(m, 2), "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
    (lambda m: torch.fft.fft(m), "tensor(..., device='meta', size=(3,), dtype=torch.complex64)"),
    (lambda m: torch.full((2,), 3, device="meta"), "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
    (lambda m: torch.tensor([1, 2], device="meta"), "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
    (lambda m: m.sort().indices, "tensor(..., device='meta', size=(3,), dtype=torch.int64)"),
    (lambda m: torch.linalg.svd(torch.ones(4, 3, device="meta")).Vh, "tensor(..., device='meta', size=(3, 3))"),
    (lambda m: nn.Linear(2, 3, device="meta")(torch.ones(1, 2, device="meta")),
     "tensor(..., device='meta', size=(1, 3), grad_fn=<AddmmBackward0>)"),
    (lambda m: nn.Linear(2, 3, device="meta").weight,
     "Parameter containing:\ntensor(..., device='meta', size=(3, 2), requires_grad=True)"),
    (lambda m: m.uniform_(), "tensor(..., device='meta', size=(3,))"),
    (lambda m: m.copy_(torch.ones(3)), "tensor(..., device='meta', size=(3,))"),
    (lambda m: m.resize_(5), "tensor(..., device='meta', size=(5,))"),
    (lambda m: copy.deepcopy(m), "tensor(..., device='meta', size=(3,))"),
    (lambda m: F.dropout(m), "tensor(..., device='meta', size=(3,))"),
])
def test_results_look_as_pytorchs(m, make, text):
    assert repr(make(m)) == text


@pytest.mark.parametrize(("use", "error", "text"), [
    (lambda m: m.sum().item(), RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    (lambda m: bool(m.sum()), RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"),
    (lambda m: m.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: m.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: m.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: torch.ones(3).copy_(m), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: m.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
    (lambda m: m + torch.ones(3), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    (lambda m: torch.ones(3) + m, RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
    (lambda m: torch.cat([m, torch.ones(3)]), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    (lambda m: m.nonzero(), NotImplementedError, "nonzero"),
    (lambda m: m.masked_select(m > 0), NotImplementedError, "aten::masked_select: attempted to run this operator with Meta tensors"),
    (lambda m: torch.bincount(m.long()), NotImplementedError, "aten::bincount: attempted to run this operator with Meta tensors"),
    (lambda m: torch.equal(m, m), NotImplementedError, "aten::equal: attempted to run this operator with Meta tensors"),
    (lambda m: torch.mm(m.view(3, 1), m.view(3, 1)), RuntimeError, "shapes cannot be multiplied"),
    (lambda m: nn.Linear(2, 3, device="meta").to("cpu"), NotImplementedError, r"Please use torch.nn.Module.to_empty\(\)"),
])
def test_data_are_never_made_up(m, use, error, text):
    with pytest.raises(error, match=text):
        use(m)


def test_no_memory_is_taken():
    x = torch.empty(10**6, 10**6, device="meta")
    assert x.mul(2).add(x).sum(0).shape == (10**6,)
    assert x.t().reshape(-1).shape == (10**12,)
    assert (x @ x).softmax(-1).argmax(0).shape == (10**6,)
    assert torch.cat([x, x]).sort(1).values.shape == (2 * 10**6, 10**6)
    assert torch.zeros_like(x).expand(3, -1, -1).shape == (3, 10**6, 10**6)
    assert nn.Linear(10**6, 10**6, device="meta")(x).shape == x.shape
    assert nn.Embedding(10**9, 10**4, device="meta")(torch.zeros(3, dtype=torch.long)).shape == (3, 10**4)


def test_strides_and_views():
    x = torch.empty(2, 3, 4, 5, device="meta", memory_format=torch.channels_last)
    assert x.stride() == (60, 1, 15, 3)
    assert (x * 2).stride() == (60, 1, 15, 3)
    assert x.permute(0, 2, 3, 1).is_contiguous()
    assert torch.empty_strided((2, 3), (1, 2), device="meta").stride() == (1, 2)
    v = x[:, 1:, ::2]
    v.mul_(2)
    assert (v.shape, v.storage_offset(), x._version) == ((2, 2, 2, 5), 1, 1)
    assert x.data_ptr() == 0 and x.untyped_storage().nbytes() == 480


def test_the_generator_is_left_alone():
    torch.manual_seed(0)
    nn.Linear(2, 3, device="meta")
    torch.randn(5, device="meta"), torch.randperm(5, device="meta"), torch.empty(4, device="meta").normal_()
    F.dropout(torch.ones(4, device="meta"))
    assert torch.randn(1).item() == pytest.approx(1.5410, abs=1e-4)


def test_a_network_and_its_gradients():
    with torch.device("meta"):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                            nn.Linear(32, 10), nn.LayerNorm(10), nn.Dropout(0.5))
        x = torch.randn(10**6, 3, 32, 32)
        loss = F.cross_entropy(net(x), torch.zeros(10**6, dtype=torch.long))
    assert repr(loss) == "tensor(..., device='meta', size=(), grad_fn=<NllLossBackward0>)"
    loss.backward()
    assert all(p.grad.shape == p.shape and p.grad.is_meta for p in net.parameters())


@pytest.mark.parametrize("make", [
    lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)(torch.randn(5, 7, 16)).shape == (5, 7, 16),
    lambda: nn.LSTM(10, 20, 2)(torch.randn(5, 3, 10))[0].shape == (5, 3, 20),
    lambda: nn.GRU(10, 20, bidirectional=True)(torch.randn(5, 3, 10))[0].shape == (5, 3, 40),
    lambda: F.interpolate(torch.randn(1, 3, 8, 8), scale_factor=2).shape == (1, 3, 16, 16),
    lambda: torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape == (2, 3, 5),
])
def test_modules_under_the_device_context(make):
    with torch.device("meta"):
        assert make()


def test_to_empty_and_assigned_state():
    state = nn.Linear(2, 3).state_dict()
    net = nn.Linear(2, 3, device="meta").to_empty(device="cpu")
    net.load_state_dict(state)
    assert torch.equal(net.weight, state["weight"])
    net = nn.Linear(2, 3, device="meta")
    net.load_state_dict(state, assign=True)
    assert net.weight.device.type == "cpu" and torch.equal(net.weight, state["weight"])


def test_files_keep_them():
    buffer = io.BytesIO()
    torch.save(torch.ones(2, 3, device="meta"), buffer)
    buffer.seek(0)
    assert repr(torch.load(buffer)) == "tensor(..., device='meta', size=(2, 3))"


@pytest.mark.parametrize("given", [(), (0,), (100,), ([1, 2, 3],)])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_have_a_size_and_no_data(given):
    for kind in (torch.TypedStorage, torch.UntypedStorage):
        made, plain = kind(*given, device="meta"), kind(*given)
        assert (made.device.type, made.nbytes(), made.size(), made.data_ptr()) == ("meta", plain.nbytes(), plain.size(), 0)
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            made[0]
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            made.tolist()
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            made.cpu()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.TypedStorage([1, 2]).copy_(torch.TypedStorage([1, 2], device="meta"))
