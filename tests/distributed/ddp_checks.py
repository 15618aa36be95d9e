"""What two workers check of DistributedDataParallel and SyncBatchNorm; test_ddp.py starts them once, with the checks of ddp_beside.py too,
and reads what they report.

Right values are those of one process with the whole batch, or recorded from PyTorch with two gloo workers.
"""

import datetime
import io
import json
import pickle
import sys
import traceback
import warnings
from pathlib import Path

import ddp_case
import torch
import torch.distributed as dist
from ddp_case import WORLD, batches, check, close, cnn, disturbed, mlp, part, raises, state_of, train
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


# ---------------------------------------------------------------------------------------- half the batch each
def same_as_one_process(rank, **options):
    data = batches(5)
    close(train(DDP(disturbed(mlp(), rank), **options), data, rank), train(mlp(), data))


@check
def mlp_equals_one_process(rank):
    same_as_one_process(rank)


@check
def mlp_with_gradients_in_buckets(rank):
    same_as_one_process(rank, gradient_as_bucket_view=True)


@check
def mlp_with_a_static_graph(rank):
    same_as_one_process(rank, static_graph=True)


@check
def mlp_that_finds_unused_parameters(rank):
    same_as_one_process(rank, find_unused_parameters=True)


@check
def mlp_with_many_buckets(rank):
    model = DDP(mlp(), bucket_cap_mb=0.0004)
    assert len(model.reducer.buckets) == 3, len(model.reducer.buckets)
    same_as_one_process(rank, bucket_cap_mb=0.0004)
    same_as_one_process(rank, bucket_cap_mb_list=[0.0001, 0.002])


@check
def cnn_with_sync_batch_norm_equals_one_process(rank):
    data = batches(1, 8, 8)
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(disturbed(cnn(), rank)))
    close(train(model, data, rank), train(cnn(), data))


@check
def accumulation_without_sync_equals_one_process(rank):
    data, plain = batches(5), mlp()
    expected = train(plain, data)
    for options in ({}, {"gradient_as_bucket_view": True}):
        model = DDP(disturbed(mlp(), rank), **options)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for x, y in data:
            x, y = part(x, rank), part(y, rank)
            optimizer.zero_grad()
            with model.no_sync():
                (nn.functional.cross_entropy(model(x[:4]), y[:4]) / 2).backward()
            (nn.functional.cross_entropy(model(x[4:]), y[4:]) / 2).backward()
            optimizer.step()
        close(state_of(model), expected)


@check
def within_no_sync_gradients_stay_local(rank):
    model = DDP(nn.Linear(2, 1, bias=False))
    x = torch.full((1, 2), rank + 1.0)
    with model.no_sync():
        model(x).sum().backward()
    assert model.module.weight.grad.tolist() == [[rank + 1.0] * 2]
    model(x).sum().backward()
    assert model.module.weight.grad.tolist() == [[3.0, 3.0]]  # the mean of 2 and 4


# ---------------------------------------------------------------------------------------- unused parameters
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 4)
        self.left = nn.Linear(4, 2)
        self.right = nn.Linear(4, 2)

    def forward(self, x, which="both"):
        h = self.trunk(x)
        if which == "both":
            return {"left": self.left(h), "right": [self.right(h)]}
        return (self.left if which == "left" else self.right)(h)


X = torch.ones(2, 3)


@check
def an_unused_parameter_is_an_error_at_the_next_forward(rank):
    model = DDP(Branches())
    model(X, "left").sum().backward()
    assert model.module.right.bias.grad is None
    with raises(RuntimeError, f"did not receive grad for rank {rank}: 4 5"):
        model(X)
    with raises(RuntimeError, "find_unused_parameters=True"):
        model(X)


@check
def unused_parameters_are_found(rank):
    model = DDP(Branches(), find_unused_parameters=True)
    model(X, "left" if rank == 0 else "right").sum().backward()
    assert model.module.left.bias.grad.tolist() == [1.0, 1.0]  # 2 on one worker, nothing on the other
    assert model.module.right.bias.grad.tolist() == [1.0, 1.0]
    model.zero_grad()
    model(X, "left").sum().backward()
    assert model.module.left.bias.grad.tolist() == [2.0, 2.0]
    assert model.module.right.bias.grad is None  # nobody used it
    model.zero_grad()
    out = model(X)
    (out["left"].sum() + out["right"][0].sum()).backward()
    assert model.module.right.bias.grad.tolist() == [2.0, 2.0]


@check
def a_static_graph_may_leave_parameters_unused(rank):
    for model in (DDP(Branches(), static_graph=True), DDP(Branches())):
        if not model.static_graph:
            model._set_static_graph()
        for _ in range(2):
            model.zero_grad()
            model(X, "left").sum().backward()
            assert model.module.left.bias.grad.tolist() == [2.0, 2.0]
            assert model.module.right.bias.grad is None
        assert model._get_ddp_logging_data()["can_set_static_graph"]


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3, bias=False)
        nn.init.eye_(self.linear.weight)

    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.linear, x, use_reentrant=True)
        return x


@check
def parameters_may_be_shared_by_checkpoints(rank):
    x = torch.full((1, 3), rank + 1.0, requires_grad=True)
    for options in ({"static_graph": True}, {}):
        model = DDP(Checkpointed(), **options)
        for _ in range(2):
            model.zero_grad()
            model(x).sum().backward()
            assert model.module.linear.weight.grad.tolist() == [[3.0] * 3] * 3


@check
def a_backward_within_a_backward_needs_a_static_graph(rank):
    def gradients(model):
        first, second = model.module
        x = torch.full((1, 2), rank + 1.0)

        @torch.enable_grad()
        def again(_):
            second(torch.ones(1, 1)).sum().backward()

        with torch.no_grad():
            second.weight.fill_(2)
        out = model(x)
        out.register_hook(again)
        out.sum().backward()
        return first.weight.grad.tolist()

    def model():
        made = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False))
        made[1].register_parameter("unused", nn.Parameter(torch.ones(1)))  # so that the bucket is not full when the error comes
        return made

    assert gradients(DDP(model(), static_graph=True)) == [[3.0, 3.0]]
    with raises(RuntimeError, "1 with name 1.weight has been marked as ready twice"):
        gradients(DDP(model()))


# ---------------------------------------------------------------------------------------- what else construction promises
@check
def buffers_follow_rank_0(rank):
    model = DDP(nn.BatchNorm1d(2))
    x = torch.arange(8.0).view(4, 2) * (rank + 1)
    model(x).sum().backward()
    mine = model.module.running_mean.clone()
    assert (mine[0].item() > 0.31) == (rank == 1)
    model(x)
    model.eval()
    close(model.module.running_mean * 0, 0)
    local = DDP(nn.BatchNorm1d(2), forward_sync_buffers=False)
    local(x).sum().backward()
    local(x).sum().backward()
    close(local.module.running_mean, x.mean(0) * 0.19)
    first = mine.clone()
    dist.broadcast(first, 0)
    close(model.module.running_mean, first * 0.9 + x.mean(0) * 0.1)


@check
def models_that_differ_are_an_error_on_every_worker(rank):
    with raises(RuntimeError, "appears not to match sizes of the same param in process"):
        DDP(nn.Linear(3, 4 + rank))
    with raises(RuntimeError, f"Rank {rank} has {2 + 2 * rank} params, while rank {1 - rank} has inconsistent {4 - 2 * rank} params"):
        DDP(nn.Sequential(*[nn.Linear(3, 3) for _ in range(1 + rank)]))


@check
def frozen_and_ignored_parameters_are_left_alone(rank):
    model = Branches()
    model.trunk.weight.requires_grad_(False)
    with torch.no_grad():
        model.left.weight.fill_(rank)
    DDP._set_params_and_buffers_to_ignore_for_model(model, ["left.weight"])
    wrapped = DDP(model)
    out = wrapped(X * (rank + 1))
    (out["left"].sum() + out["right"][0].sum()).backward()
    assert model.left.weight[0, 0].item() == rank and model.trunk.weight.grad is None
    grads = [torch.empty(4) for _ in range(2)]
    dist.all_gather(grads, model.left.weight.grad[0])
    assert not torch.equal(*grads)
    dist.all_gather(grads, model.right.weight.grad[0])
    assert torch.equal(*grads)


@check
def gradients_lie_in_the_bucket(rank):
    model = DDP(nn.Linear(4, 3), gradient_as_bucket_view=True)
    x = torch.full((1, 4), rank + 1.0)
    model(x).sum().backward()
    weight, bias = (p.grad for p in model.parameters())
    flat = model.reducer.buckets[0].flat
    start = flat.data_ptr()
    assert all(start <= g.data_ptr() < start + flat.numel() * 4 for g in (weight, bias))
    assert weight.tolist() == [[1.5] * 4] * 3 and bias.tolist() == [1.0] * 3
    where = weight.data_ptr()
    flat.zero_()
    assert weight.tolist() == [[0.0] * 4] * 3
    model(x).sum().backward()  # adds up in place
    assert weight.tolist() == [[1.5] * 4] * 3 and model.module.weight.grad.data_ptr() == where
    model.zero_grad()
    model(x).sum().backward()
    assert model.module.weight.grad.data_ptr() == where


@check
def a_pickled_model_goes_on(rank):
    model = DDP(mlp(), find_unused_parameters=True)
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    again = pickle.loads(pickle.dumps(model))
    data = batches(5)
    close(train(again, data, rank), train(mlp(), data))
    assert [k for k in again.state_dict()][:2] == ["module.0.weight", "module.0.bias"]


@check
def gradients_of_other_dtypes(rank):
    model = nn.Sequential(nn.Linear(3, 3).double(), nn.Linear(3, 3).double())
    model[1].register_parameter("scale", nn.Parameter(torch.ones(3, dtype=torch.float64)))
    model.half_scale = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    wrapped = DDP(model, find_unused_parameters=True)
    assert {b.params[0].dtype for b in wrapped.reducer.buckets} == {torch.float64, torch.bfloat16}
    wrapped(torch.ones(2, 3, dtype=torch.float64) * (rank + 1)).sum().backward()
    assert model[0].weight.grad.dtype == torch.float64 and model.half_scale.grad is None
    sums = [torch.empty(3, dtype=torch.float64) for _ in range(2)]
    dist.all_gather(sums, model[0].weight.grad[0])
    assert torch.equal(*sums)


@check
def sparse_gradients(rank):
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Embedding(6, 2, sparse=True), nn.Flatten(), nn.Linear(4, 1)))
    assert len(model.reducer.buckets) == 2
    weight = model.module[0].weight
    for indices in (torch.tensor([[1, 1], [3, 3]]) if rank == 0 else torch.tensor([[1, 5]]), torch.tensor([[2, 2]])):
        model.zero_grad()
        model(indices).sum().backward()
        assert weight.grad.is_sparse
        dense = torch.zeros(6, 2)
        for row in indices:
            for i, at in enumerate(row):
                dense[at] += model.module[2].weight.detach().view(2, 2)[i]
        dist.all_reduce(dense)
        close(weight.grad.to_dense(), dense / 2)
    torch.optim.SparseAdam([weight], lr=0.1).step()
    copy_of_weight = weight.detach().clone()
    dist.broadcast(copy_of_weight, 0)
    close(weight, copy_of_weight, 0)


# ---------------------------------------------------------------------------------------- communication hooks
@check
def a_hook_sees_buckets_and_decides(rank):
    seen = []

    def sevens(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((state, bucket.index(), bucket.is_last(), tuple(bucket.buffer().shape), [tuple(p.shape) for p in bucket.parameters()],
                     [tuple(g.shape) for g in bucket.gradients()]))
        future = torch.futures.Future()
        future.set_result(torch.full_like(bucket.buffer(), 7))
        return future

    model = DDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    model.register_comm_hook("state", sevens)
    with raises(RuntimeError, "can only be called once"):
        model.register_comm_hook(None, sevens)
    model(torch.ones(1, 3)).sum().backward()
    shapes = [(2,), (2, 4), (4,), (4, 3)]
    assert seen == [("state", 0, True, (26,), shapes, shapes)], seen
    assert model.module[0].bias.grad.tolist() == [7.0] * 4


@check
def hooks_of_every_kind(rank):
    def gradient(register):
        torch.manual_seed(0)
        model = DDP(nn.Linear(3, 1, bias=False))
        register(model)
        model(torch.full((1, 3), rank + 1.0)).sum().backward()
        return model.module.weight.grad[0, 0].item()

    for kind, value in ((DDPCommHookType.ALLREDUCE, 1.5), (DDPCommHookType.FP16_COMPRESS, 1.5), (DDPCommHookType.BF16_COMPRESS, 1.5),
                        (DDPCommHookType.NOOP, rank + 1.0)):
        assert gradient(lambda m, kind=kind: register_ddp_comm_hook(kind, m)) == value, kind
    for wrap in (default_hooks.fp16_compress_wrapper, default_hooks.bf16_compress_wrapper):
        assert gradient(lambda m, wrap=wrap: m.register_comm_hook(None, wrap(default_hooks.allreduce_hook))) == 1.5
    assert gradient(lambda m: m._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)) == 1.5
    with raises(NotImplementedError, "powerSGD_hook"):
        gradient(lambda m: register_ddp_comm_hook(DDPCommHookType.POWER_SGD, m))
    with raises(TypeError, "must be callable"):
        gradient(lambda m: m.register_comm_hook(None, 3))
    with raises(RuntimeError, "must return a torch.futures.Future object"):
        gradient(lambda m: m.register_comm_hook(None, lambda state, bucket: 3))


@check
def post_local_sgd(rank):
    own = [dist.new_group([r]) for r in range(WORLD)][rank]
    torch.manual_seed(0)
    model = DDP(nn.Linear(2, 1, bias=False))
    model.register_comm_hook(PostLocalSGDState(None, own, start_localSGD_iter=1), post_localSGD_hook)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        averager = PeriodicModelAverager(period=2, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), averager)
    start = model.module.weight.detach().clone()
    x = torch.full((1, 2), rank + 1.0)
    expected = [start - 1.5, start - 3.0, start - 3.0 - (rank + 1), start - 6.0]
    for value in expected:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        close(model.module.weight, value, 1e-6)
    assert optimizer.state_dict()["step"] == 4


# ---------------------------------------------------------------------------------------- synchronized batch normalization
@check
def sync_batch_norm_normalizes_the_whole_batch(rank):
    torch.manual_seed(3)
    whole = (torch.randn(7, 4, 5) * 3 + 2).requires_grad_()
    weights = torch.randn(7, 4, 5)
    for options in ({}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}, {"bias": False}):
        plain, sync = nn.BatchNorm1d(4, **options), nn.SyncBatchNorm(4, **options)
        sync.load_state_dict(plain.state_dict())
        rows = slice(0, 3) if rank == 0 else slice(3, 7)  # unequal shares
        mine = whole.detach()[rows].clone().requires_grad_()
        whole.grad = None
        for _ in range(2):
            expected, got = plain(whole), sync(mine)
        close(got, expected[rows])
        (expected * weights).sum().backward()
        (got * weights[rows]).sum().backward()
        close(mine.grad, whole.grad[rows])
        for mine_too, theirs in zip(sync.parameters(), plain.parameters()):
            total = mine_too.grad.clone()
            dist.all_reduce(total)
            close(total, theirs.grad, 1e-4)
        for name, value in plain.state_dict().items():
            close(sync.state_dict()[name].double(), value.double())
        plain.eval(), sync.eval()
        if plain.track_running_stats:
            close(sync(mine), plain(whole)[rows])
        else:  # outside of training a process is alone with its batch
            close(sync(mine), plain(mine))


@check
def sync_batch_norm_with_an_empty_batch(rank):
    torch.manual_seed(4)
    rows = torch.randn(6, 3, 2, 2)
    plain, sync = nn.BatchNorm2d(3), nn.SyncBatchNorm(3)
    mine = (rows if rank == 0 else rows[:0]).clone().requires_grad_()
    got = sync(mine)
    close(sync.running_var, _after(plain, rows).running_var)
    got.square().sum().backward()
    assert mine.grad.shape == mine.shape
    half = nn.SyncBatchNorm(3)(rows.bfloat16())
    assert half.dtype == torch.bfloat16
    one = torch.ones(1, 3)
    if rank:
        one = one[:0]
    with raises(ValueError, "Expected more than 1 value per channel when training"):
        nn.SyncBatchNorm(3)(one)


def _after(module, x):
    module(x)
    return module


# ---------------------------------------------------------------------------------------- refusals
@check
def uneven_inputs_are_refused(rank):
    model = DDP(nn.Linear(2, 2))
    with raises(NotImplementedError, "same number of batches"):
        model.join()
    with model.join(enable=False):
        model(torch.ones(1, 2))
    with raises(NotImplementedError, "torch.autocast"):
        DDP(nn.Linear(2, 2), mixed_precision=object())


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    rank, results = dist.get_rank(), {}
    for name, function in ddp_case.CHECKS.items():
        try:
            function(rank)
            results[name] = None
        except Exception:
            text = io.StringIO()
            traceback.print_exc(file=text)
            results[name] = text.getvalue()
    (ddp_case.FOLDER / f"results_{rank}.json").write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    import ddp_beside  # noqa: F401  (its checks join the table)

    ddp_case.FOLDER = Path(sys.argv[1])
    main()
