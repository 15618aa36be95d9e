"""Small names that test suites and tools reach for."""

import pytest
import torch


def test_tensor_metadata_is_checked():
    x = torch.ones(2, 3)
    torch._assert_tensor_metadata(x, [2, 3], [3, 1], torch.float32)
    with pytest.raises(RuntimeError, match=r"Tensor strides mismatch! Expected: \[1, 3\], Got: \[3, 1\]"):
        torch._assert_tensor_metadata(x, [2, 3], [1, 3])
    with pytest.raises(RuntimeError, match="Tensor sizes mismatch!"):
        torch._assert_tensor_metadata(x, [3, 2])


def test_legacy_storages_by_dtype():
    assert torch.storage._dtype_to_storage_type_map()[torch.float32] == "FloatStorage"


def test_configuration_is_a_text():
    assert "MindSpore" in torch.__config__.show() and "threads" in torch.__config__.parallel_info()


def test_numpy_seed_of_a_worker():
    from torch.utils.data._utils.worker import _generate_state

    assert _generate_state(13434589827475259383, 4) == (2884386318, 1088094898, 3523808998, 3860348662)


def test_dirichlet_of_tiny_concentrations_is_a_point_of_the_simplex():
    torch.manual_seed(0)
    found = torch._sample_dirichlet(torch.tensor([[1e-6, 1e-6], [1e-3, 1.0], [1e-6, 1e-2]]))
    assert found[0].tolist() == [0.5, 0.5] and found[2, 1] > 0.9999
    assert torch.distributions.Beta(torch.tensor([1e-6]), torch.tensor([1e-6])).sample().isfinite().all()


def test_gradient_of_the_largest_of_a_segment_with_nan():
    x = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    torch.segment_reduce(x, "max", lengths=torch.tensor([1, 2]), initial=0).sum().backward()
    assert x.grad.tolist() == [1, 1, 0]


def test_a_scheduler_does_not_keep_its_optimizer_alive():
    import gc
    import weakref

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    alive = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert alive() is None
    finally:
        gc.enable()


def test_workers_of_an_abandoned_loader_end():
    data = torch.utils.data.TensorDataset(torch.arange(100.0))
    iterator = iter(torch.utils.data.DataLoader(data, batch_size=2, num_workers=2))
    next(iterator)
    workers = iterator._workers
    del iterator
    for worker in workers:
        worker.join(10)
        assert not worker.is_alive()


@pytest.mark.parametrize("data, expected", [
    ([2.0, 3.0, 4.0], [12, 8, 6]), ([0.0, 3.0, 4.0], [12, 0, 0]), ([0.0, 0.0, 4.0], [0, 0, 0]),
    ([float("nan"), 3.0, 4.0], [12, float("nan"), float("nan")]),
])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_gradient_of_the_product_of_a_segment(data, expected, dtype):
    x = torch.tensor(data, dtype=dtype, requires_grad=True)
    torch.segment_reduce(x, "prod", lengths=torch.tensor([3])).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor(expected, dtype=dtype), equal_nan=True)


def test_empty_takes_a_memory_format():
    assert torch.empty(2, 3, 3, 6, memory_format=torch.channels_last).stride() == (54, 1, 18, 3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.empty(2, 3, memory_format=torch.channels_last)


def test_functional_call_shows_what_the_module_assigned():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor([0.0]))

        def forward(self, x):
            self.count = self.count + 1
            return x + self.count

    given, module = {"count": torch.tensor([2.0])}, Counter()
    assert torch.func.functional_call(module, given, torch.zeros(1)).item() == 3
    assert given["count"].item() == 3 and module.count.item() == 0
    with pytest.raises(TypeError, match="is not an instance of torch.Tensor"):
        torch.func.functional_call(module, {"count": "two"}, torch.zeros(1))


def test_storage_type():
    assert torch.ones(2, dtype=torch.int32).storage_type() is torch.IntStorage


@pytest.mark.parametrize(("name", "text"), [
    ("data", "Deleting tensor data is not allowed"), ("requires_grad", "requires_grad must be a bool"),
    ("_grad_fn", "Deletion of _grad_fn not allowed"), ("_backward_hooks", "Deletion of _backwards_hooks not allowed")])
def test_what_a_tensor_is_made_of_cannot_be_deleted(name, text):
    with pytest.raises(RuntimeError, match=text):
        delattr(torch.ones(2), name)
