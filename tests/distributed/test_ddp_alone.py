"""DistributedDataParallel and its neighbours in one process: what construction refuses, hooks, state, checkpoints without a group."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel as DDP


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{tmp_path / 'store'}")
    yield dist.group.WORLD
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ DistributedDataParallel
def test_a_group_is_needed():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DDP(nn.Linear(2, 2))


@pytest.mark.parametrize("make, error, text", [
    (lambda: DDP(nn.ReLU()), RuntimeError, "doesn't have any parameter that requires a gradient"),
    (lambda: DDP(nn.Linear(2, 2), device_ids=[0, 1]), ValueError, "device_ids can only be None or contain a single element."),
    (lambda: DDP(nn.Linear(2, 2), device_ids=[0]), ValueError, "but got device_ids \\[0\\], output_device None, and module parameters"),
    (lambda: DDP(nn.LazyLinear(2)), RuntimeError, "Modules with uninitialized parameters can't be used"),
    (lambda: DDP(nn.Linear(2, 2), mixed_precision=1), NotImplementedError, "torch.autocast"),
    (lambda: DDP(nn.Linear(2, 2), device_mesh=1), NotImplementedError, "new_group"),
    (lambda: DDP(nn.Linear(2, 2)).join(), NotImplementedError, "same number of batches"),
    (lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, 3), TypeError, "Communication hook must be callable."),
])  # fmt: skip
def test_what_cannot_be(group, make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_annotations_of_a_hook_are_checked(group):
    def wrong_bucket(state, bucket: int): ...

    def wrong_result(state, bucket: dist.GradBucket) -> int: ...

    with pytest.raises(ValueError, match="bucket annotation should be dist.GradBucket"):
        DDP(nn.Linear(2, 2)).register_comm_hook(None, wrong_bucket)
    with pytest.raises(ValueError, match="return annotation should be torch.futures.Future"):
        DDP(nn.Linear(2, 2)).register_comm_hook(None, wrong_result)


def test_one_process_computes_what_the_module_computes(group):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model = DDP(copy.deepcopy(plain), gradient_as_bucket_view=True)
    x = torch.randn(5, 3)
    for module in (plain, model):
        module(x).square().sum().backward()
    for a, b in zip(plain.parameters(), model.parameters()):
        torch.testing.assert_close(a.grad, b.grad)
    assert list(model.state_dict())[0] == "module.0.weight" and model.module[0].weight is next(model.parameters())
    assert repr(model).startswith("DistributedDataParallel(\n  (module): Sequential(")
    with pytest.raises(AttributeError):
        getattr(model, "weight")  # noqa: B009


def test_without_grad_mode_nothing_is_expected(group):
    model = DDP(nn.Linear(2, 2))
    with torch.no_grad():
        assert not model(torch.ones(1, 2)).requires_grad
    model(torch.ones(1, 2))  # no backward
    model(torch.ones(1, 2)).sum().backward()
    assert model.module.weight.grad is not None


def test_two_forwards_and_one_backward(group):
    model = DDP(nn.Linear(2, 1, bias=False))
    (model(torch.ones(1, 2)) + model(torch.ones(1, 2))).sum().backward()
    assert model.module.weight.grad.tolist() == [[2.0, 2.0]]
    model.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[1.0, 1.0]]


def test_buffers_flag_has_an_older_name(group):
    with pytest.warns(FutureWarning, match="`broadcast_buffers` is deprecated. Use `forward_sync_buffers`"):
        assert DDP(nn.BatchNorm1d(2), broadcast_buffers=False).forward_sync_buffers is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DDP(nn.BatchNorm1d(2)).will_sync_module_buffers()
        assert not DDP(nn.BatchNorm1d(2), forward_sync_buffers=False).will_sync_module_buffers()


def test_copies(group):
    model = DDP(nn.Linear(2, 2), static_graph=True)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        again(torch.ones(1, 2)).sum().backward()
        assert again.module.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]] and model.module.weight.grad is None


def test_gradients_in_buckets_share_memory_with_numpy(group):
    model = DDP(nn.Linear(2, 1), gradient_as_bucket_view=True)
    model(torch.ones(1, 2)).sum().backward()
    flat = model.reducer.buckets[0].flat.numpy()
    flat *= 5
    assert model.module.weight.grad.tolist() == [[5.0, 5.0]] and model.module.bias.grad.tolist() == [5.0]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    np.testing.assert_allclose(np.linalg.norm(flat), 1, rtol=1e-4)


def test_data_parallel_of_one_device():
    model = nn.DataParallel(nn.Linear(2, 2), device_ids=None)
    assert model(torch.ones(1, 2)).shape == (1, 2) and list(model.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(NotImplementedError, match="start one process a device"):
        nn.DataParallel(nn.Linear(2, 2), device_ids=[0, 1])


def test_sync_batch_norm_alone_is_batch_norm(group):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3, momentum=0.3))
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
    assert type(sync[1]) is nn.SyncBatchNorm and sync[1].momentum == 0.3
    x = torch.randn(2, 1, 5, 5)
    torch.testing.assert_close(sync(x), plain(x))


# ------------------------------------------------------------------------------------------------ checkpoints
class Counter:
    def __init__(self, n):
        self.n = n

    def state_dict(self):
        return {"n": self.n}

    def load_state_dict(self, state):
        self.n = state["n"]


def nested():
    return {"model": {"w": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}, "epoch": 3, "counter": Counter(7),
            "list": [1, 2, {"x": torch.zeros(2)}], "plain": [1, 2, "a"], "pair": (1, torch.ones(1)), "empty": {}, "none": None}  # fmt: skip


def test_a_nested_state_comes_back(tmp_path):
    metadata = dcp.save(nested(), checkpoint_id=tmp_path / "c")
    assert list(metadata.state_dict_metadata) == ["model.w", "model.b", "epoch", "counter.n", "list.0", "list.1", "list.2.x", "plain",
                                                  "pair", "none"]
    assert metadata.planner_data["list.2.x"] == ("list", 2, "x")
    w = torch.zeros(2, 3)
    wanted = {"model": {"w": w, "b": torch.zeros(2).bfloat16()}, "epoch": 0, "counter": Counter(0), "list": [0, 0, {"x": torch.ones(2)}],
              "plain": [], "pair": None, "none": 1}
    dcp.load(wanted, checkpoint_id=tmp_path / "c")
    assert wanted["model"]["w"] is w and w.tolist() == [[0, 1, 2], [3, 4, 5]] and wanted["model"]["b"].tolist() == [1, 1]
    assert wanted["epoch"] == 3 and wanted["counter"].n == 7 and wanted["list"][:2] == [1, 2] and wanted["plain"] == [1, 2, "a"]
    assert wanted["list"][2]["x"].tolist() == [0, 0] and wanted["pair"][1].tolist() == [1] and wanted["none"] is None


@pytest.mark.parametrize("wanted, text", [
    ({"nothing": 1}, "RuntimeError: Missing key in checkpoint state_dict: nothing."),
    ({"model": {"w": torch.zeros(3)}},
     "ValueError: Size mismatch between saved torch.Size([2, 3]) and current: torch.Size([3]) for model.w"),
])  # fmt: skip
def test_what_does_not_fit_is_an_error(tmp_path, wanted, text):
    dcp.save(nested(), checkpoint_id=tmp_path)
    with pytest.raises(CheckpointException) as caught:
        dcp.load(wanted, checkpoint_id=tmp_path)
    assert text in str(caught.value) and list(caught.value.failures) == [0]


def test_missing_checkpoints_and_partial_loads(tmp_path):
    with pytest.raises(CheckpointException, match="No such file"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path / "nowhere")
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({"a": 1})
    dcp.save({"a": 1}, checkpoint_id=tmp_path)
    wanted = {"a": 0, "b": 2}
    dcp.load(wanted, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert wanted == {"a": 1, "b": 2}
    with pytest.raises(CheckpointException, match="overwrite=False"):
        dcp.save({"a": 1}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


def test_files_of_a_writer(tmp_path):
    state = {f"t{i}": torch.full((2,), float(i)) for i in range(5)}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path / "a", single_file_per_rank=False))
    assert len(list((tmp_path / "a").glob("*.distcp"))) == 5
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path / "b", thread_count=2))
    assert len(list((tmp_path / "b").glob("*.distcp"))) == 2
    for folder in "ab":
        wanted = {name: torch.empty(2) for name in state}
        dcp.load(wanted, storage_reader=dcp.FileSystemReader(tmp_path / folder))
        assert [t[0].item() for t in wanted.values()] == [0, 1, 2, 3, 4]


def test_saving_in_the_background_keeps_the_values_of_the_call(tmp_path):
    t = torch.ones(3)
    future = dcp.async_save({"t": t}, checkpoint_id=tmp_path)
    t.zero_()
    future.result()
    wanted = {"t": torch.empty(3)}
    dcp.load(wanted, checkpoint_id=tmp_path)
    assert wanted["t"].tolist() == [1, 1, 1]


def test_metadata_holds_nothing_but_metadata(tmp_path):
    import os

    class Hostile:
        def __reduce__(self):
            return os.system, ("true",)

    dcp.save({"a": 1}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(CheckpointException, match="must not hold"):
        dcp.load({"a": 0}, checkpoint_id=tmp_path)


def test_one_file_and_a_folder_turn_into_each_other(tmp_path):
    state = {"model": {"w": torch.arange(3.0)}, "list": [torch.ones(1), {"k": 2}], "epoch": 4}
    torch.save(state, tmp_path / "one.pt")
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "two.pt")
    again = torch.load(tmp_path / "two.pt", weights_only=False)
    assert again["model"]["w"].tolist() == [0, 1, 2] and again["epoch"] == 4
    assert again["list"][0].tolist() == [1] and again["list"][1] == {"k": 2}


@pytest.mark.parametrize("flat", [False, True])
def test_states_bear_the_names_of_the_bare_model(group, tmp_path, flat):
    torch.manual_seed(0)
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    model = DDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    optimizer = torch.optim.AdamW([{"params": model.module[0].parameters()}, {"params": model.module[1].parameters(), "lr": 0.5}], lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer, options=options)
    assert list(weights) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert ("state.1.bias.exp_avg" in moments) if flat else (moments["param_groups"][1]["params"] == ["1.weight", "1.bias"])
    dcp.save({"weights": weights, "moments": moments}, checkpoint_id=tmp_path / "c")

    bare = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    other = torch.optim.AdamW([{"params": bare[0].parameters()}, {"params": bare[1].parameters()}], lr=0.9)
    weights, moments = get_state_dict(bare, other, options=options)
    before = [p.detach().clone() for p in bare.parameters()]
    wanted = {"weights": weights, "moments": moments}
    assert all(torch.equal(a, b) for a, b in zip(before, bare.parameters()))  # making the state moves nothing
    dcp.load(wanted, checkpoint_id=tmp_path / "c")
    set_state_dict(bare, other, model_state_dict=wanted["weights"], optim_state_dict=wanted["moments"], options=options)
    assert [g["lr"] for g in other.param_groups] == [0.1, 0.5]
    for a, b in zip(bare.parameters(), model.parameters()):
        assert torch.equal(a, b) and torch.equal(other.state[a]["exp_avg"], optimizer.state[b]["exp_avg"])


def test_a_folder_that_pytorch_wrote_is_read_as_whole_tensors(project_root):
    """Two gloo workers of PyTorch wrote it; `rows` lies in two chunks. Recorded by tests/record/sharded_checkpoint.py."""
    wanted = {"rows": torch.zeros(5, 2), "model": {"w": torch.zeros(3, dtype=torch.bfloat16)}, "epoch": 0}
    folder = project_root / "tests" / "goldens" / "sharded_checkpoint"
    assert len(dcp.FileSystemReader(folder).read_metadata().state_dict_metadata["rows"].chunks) == 2
    dcp.load(wanted, checkpoint_id=folder)
    assert wanted["rows"].tolist() == torch.arange(10.0).view(5, 2).tolist()
    assert wanted["model"]["w"].tolist() == [0, 1, 2] and wanted["epoch"] == 3


def test_a_thawed_parameter_is_reduced_again(group):
    model = DDP(nn.Linear(2, 1))
    for frozen in (True, False):
        for p in model.parameters():
            p.requires_grad_(not frozen)
    model(torch.ones(1, 2)).sum().backward()
    assert model.reducer.iterations == 1


def test_subgroups_are_of_all_processes(group):
    own, every = dist.new_subgroups(1, group=group)
    assert own in every and dist.get_world_size(own) == 1
    with pytest.raises(NotImplementedError, match=r"new_group\(ranks\)"):
        dist.new_subgroups(1, group=own)
