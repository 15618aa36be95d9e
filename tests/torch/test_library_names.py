"""Names that libraries on top of PyTorch reach for."""

import io

import pytest
import torch


def test_sizes_are_plain_numbers():
    assert torch.sym_max(1, 2.0) == 2.0 and isinstance(torch.sym_max(3, 2.0), float) and torch.sym_min(1, 2) == 1
    assert torch.sym_int(2.7) == 2 and torch.sym_int(-2.7) == -2 and torch.sym_ite(False, 1, 2) == 2 and torch.sym_sum([1, 2]) == 3


def test_modules_of_devices():
    assert torch.get_device_module() is torch.cpu and torch.get_device_module("cuda:0") is torch.cuda
    assert repr(torch.Stream()) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert torch.Event().query()


def test_absent_devices_answer_questions_and_refuse_work():
    assert torch.cuda.get_rng_state_all() == [] and torch.cuda.memory_stats() == {} and torch.cuda.default_generators == ()
    assert not torch.xpu.is_available() and torch.mtia.device_count() == 0
    for call in (torch.cuda.current_stream, torch.cuda.mem_get_info, torch.cuda.get_rng_state, torch.cuda.random.initial_seed):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    with pytest.raises(RuntimeError, match="torch.cuda.Stream requires CUDA support"):
        torch.cuda.Stream()
    with torch.cuda.stream(None), torch.cuda.device(-1):
        assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)


def test_sharded_models_refuse_and_name_the_way():
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy, fully_shard
    from torch.distributed.tensor import DTensor, Shard

    assert MixedPrecision(param_dtype=torch.float16).reduce_dtype is None and ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    assert Shard(1).is_shard(1) and not isinstance(torch.ones(1), DTensor)
    for call in (lambda: FullyShardedDataParallel(torch.nn.Linear(1, 1)), lambda: fully_shard(torch.nn.Linear(1, 1)), DTensor.from_local):
        with pytest.raises(NotImplementedError, match="DistributedDataParallel"):
            call()


def test_running_results_of_an_associative_function():
    from torch._higher_order_ops import associative_scan

    x = torch.arange(1.0, 7).reshape(2, 3).requires_grad_()
    assert torch.equal(associative_scan(torch.mul, x, 1), x.cumprod(1))
    backwards = associative_scan(lambda p, q: {"a": p["a"] + q["a"]}, {"a": x}, 1, reverse=True)["a"]
    assert torch.equal(backwards, x.flip(1).cumsum(1).flip(1))
    backwards.sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_files_are_read_and_written_record_by_record(tmp_path):
    torch.save({"a": torch.arange(3)}, tmp_path / "one.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "one.pt"))
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.get_record("data/0") == torch.arange(3).numpy().tobytes()
    buffer = io.BytesIO()
    writer = torch.PyTorchFileWriter(buffer)
    writer.write_record("text", b"hello", 5)
    writer.write_end_of_file()
    buffer.seek(0)
    assert torch.PyTorchFileReader(buffer).get_record("text") == b"hello"


@pytest.mark.parametrize("kind", ["REENTRANT", "NO_REENTRANT"])
def test_modules_are_checkpointed_under_their_own_names(kind):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        CheckpointImpl,
        CheckpointWrapper,
        apply_activation_checkpointing,
        checkpoint_wrapper,
    )

    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    names = list(plain.state_dict())
    x = torch.ones(2, 3, requires_grad=True)
    expected = torch.autograd.grad(plain(x).sum(), [x, *plain.parameters()])
    apply_activation_checkpointing(plain, lambda m: checkpoint_wrapper(m, CheckpointImpl[kind]), lambda m: isinstance(m, torch.nn.Linear))
    assert isinstance(plain[0], CheckpointWrapper) and list(plain.state_dict()) == names and plain[0].in_features == 3
    plain.load_state_dict(plain.state_dict())
    plain(x).sum().backward()
    assert all(torch.allclose(a, b.grad) for a, b in zip(expected, [x, *plain.parameters()]))


def test_containers_flattened_by_a_spec():
    from torch.fx._pytree import register_pytree_flatten_spec, tree_flatten_spec
    from torch.utils._pytree import tree_flatten

    _, spec = tree_flatten({"a": 1, "b": [2, 3]})
    register_pytree_flatten_spec(dict, lambda d, spec: [d[k] for k in spec.context])
    assert tree_flatten_spec({"b": [5, 6], "a": 4}, spec) == [4, 5, 6]


def test_streams_of_the_cpu_wait_for_nothing():
    stream = torch.cpu.Stream()
    with torch.cpu.stream(stream):
        assert torch.cpu.current_stream() is stream and isinstance(stream, torch.Stream)
        assert stream.record_event().query()
    torch.cpu.current_stream().wait_stream(stream)
    assert torch.cpu.Event().query()
