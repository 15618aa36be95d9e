"""What two workers check of differentiable collectives, ZeroRedundancyOptimizer and checkpoints; run by ddp_checks.py."""

import copy
import warnings

import ddp_case
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as dnn
from ddp_case import batches, check, close, disturbed, mlp, raises, state_of, train
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


# ---------------------------------------------------------------------------------------- differentiable collectives
@check
def gradients_flow_through_collectives(rank):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        _collectives(rank)


def _collectives(rank):
    weight = torch.tensor([1.0, 2, 3, 4]) * (rank + 1)
    summed = [3.0, 6.0, 9.0, 12.0]  # of the weights of both

    def new(first=1.0):
        return (torch.arange(4.0) + 10 * rank + first).requires_grad_()

    x = new()
    y = dnn.all_reduce(x)
    (y * weight).sum().backward()
    assert y.tolist() == [12.0, 14.0, 16.0, 18.0] and x.grad.tolist() == summed and x.tolist() == [1.0 + 10 * rank + i for i in range(4)]

    x = new()
    y = dnn.broadcast(x, 1)
    (y * weight).sum().backward()
    assert y.tolist() == [11.0, 12.0, 13.0, 14.0] and x.grad.tolist() == (summed if rank == 1 else [0.0] * 4)

    x = new()
    y = dnn.reduce(x, 0)
    (y * weight).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert rank == 1 or y.tolist() == [12.0, 14.0, 16.0, 18.0]

    x = new()
    parts = dnn.gather(x, 0)
    assert [p.tolist() for p in parts] == ([[1.0, 2, 3, 4], [11.0, 12, 13, 14]] if rank == 0 else [[0.0] * 4] * 2)
    sum((p * weight * (i + 1)).sum() for i, p in enumerate(parts)).backward()
    assert x.grad.tolist() == [(rank + 1) * i for i in (1.0, 2, 3, 4)]

    x = new()
    parts = dnn.all_gather(x)
    assert [p.tolist() for p in parts] == [[1.0, 2, 3, 4], [11.0, 12, 13, 14]]
    sum((p * weight * (i + 1)).sum() for i, p in enumerate(parts)).backward()
    assert x.grad.tolist() == [(rank + 1) * i for i in summed]

    xs = [new(), new(5.0)]
    y = dnn.scatter(xs, 0)
    (y * weight).sum().backward()
    assert y.tolist() == [1.0 + 4 * rank + i for i in range(4)]
    assert [x.grad.tolist() for x in xs] == ([[1.0, 2, 3, 4], [2.0, 4, 6, 8]] if rank == 0 else [[0.0] * 4] * 2)

    xs, out = [new(), new(5.0)], torch.zeros(4)
    y = dnn.reduce_scatter(out, xs)
    (y * weight).sum().backward()
    assert y.tolist() == out.tolist() == ([12.0, 14, 16, 18] if rank == 0 else [20.0, 22, 24, 26])
    assert [x.grad.tolist() for x in xs] == [[1.0, 2, 3, 4], [2.0, 4, 6, 8]]

    xs, outs = [new(), new(5.0)], [torch.zeros(4), torch.zeros(4)]
    parts = dnn.all_to_all(outs, xs)
    sum((p * weight * (i + 1)).sum() for i, p in enumerate(parts)).backward()
    assert [p.tolist() for p in parts] == [[1.0 + 4 * rank + i for i in range(4)], [11.0 + 4 * rank + i for i in range(4)]]
    assert [x.grad.tolist() for x in xs] == [[(rank + 1) * i for i in (1.0, 2, 3, 4)], [(rank + 1) * i for i in (2.0, 4, 6, 8)]]

    x, out = new(), torch.zeros(4)
    y = dnn.all_to_all_single(out, x)
    (y * weight).sum().backward()
    assert y.tolist() == out.tolist() == [1.0 + 2 * rank, 2.0 + 2 * rank, 11.0 + 2 * rank, 12.0 + 2 * rank]
    assert x.grad.tolist() == ([1.0, 2.0, 2.0, 4.0] if rank == 0 else [3.0, 4.0, 6.0, 8.0])


@check
def functional_collectives(rank):
    group = dist.group.WORLD
    x = (torch.arange(4.0).view(2, 2) + rank).requires_grad_()
    y = funcol.all_reduce(x, "avg", group)
    y.sum().backward()
    assert y.tolist() == [[0.5, 1.5], [2.5, 3.5]] and x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert funcol.wait_tensor(funcol.all_gather_tensor(x, 1, group)).tolist() == [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 3.0, 4.0]]
    assert funcol.reduce_scatter_tensor(x, "sum", 1, group).tolist() == [[1.0 + 2 * rank], [5.0 + 2 * rank]]
    assert funcol.broadcast(x, 1, group).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert funcol.permute_tensor(x, [1, 0], group).tolist() == (torch.arange(4.0).view(2, 2) + 1 - rank).tolist()
    sizes = ([1, 2], [1, 1]) if rank == 0 else ([1, 1], [2, 1])
    rows = torch.arange(float(2 if rank == 0 else 3)).view(-1, 1) + 10 * rank
    assert funcol.all_to_all_single(rows, sizes[0], sizes[1], group).tolist() == ([[0.0], [10.0], [11.0]] if rank == 0 else [[1.0], [12.0]])
    with raises(NotImplementedError, "give a ProcessGroup"):
        funcol.all_reduce(x, "sum", [0, 1])


# ---------------------------------------------------------------------------------------- optimizers over workers
@check
def zero_redundancy_optimizer_equals_an_undivided_one(rank):
    data, plain = batches(5), mlp()
    options = {"lr": 0.01, "weight_decay": 0.1}
    expected = train(plain, data, make=torch.optim.AdamW, **options)
    model = DDP(disturbed(mlp(), rank))
    made = []

    def divided(params, **given):
        made.append(ZeroRedundancyOptimizer(params, torch.optim.AdamW, **given))
        return made[0]

    close(train(model, data, rank, make=divided, **options), expected)
    held = sum(p.numel() for p in made[0].optim.state)
    assert 0 < held < sum(p.numel() for p in plain.parameters())
    with raises(RuntimeError, f"consolidate_state_dict(to={rank})"):
        made[0].state_dict()
    made[0].consolidate_state_dict(to=1)
    whole = [made[0].state_dict() if rank == 1 else None]
    dist.broadcast_object_list(whole, src=1)
    assert list(whole[0]["state"]) == list(range(6)) and whole[0]["param_groups"][0]["params"] == list(range(6))

    single = torch.optim.AdamW(plain.parameters(), **options)
    single.load_state_dict(copy.deepcopy(whole[0]))  # the state is that of an undivided optimizer
    again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.5)
    again.load_state_dict(whole[0])
    assert again.param_groups[0]["lr"] == 0.01
    for stepped, optimizer in ((plain, single), (model, again)):
        optimizer.zero_grad()
        stepped(torch.ones(2, 5)).square().sum().backward()
        optimizer.step()
    close(state_of(model), state_of(plain))
    again.param_groups[0]["lr"] = 0.0  # as a scheduler would
    before = state_of(model)
    again.step()
    close(state_of(model), before, 0)


# ---------------------------------------------------------------------------------------- checkpoints
@check
def rank_0_saves_and_all_load(rank):
    model = DDP(disturbed(mlp(), rank))
    path = ddp_case.FOLDER / "model.pt"
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    model.load_state_dict(torch.load(path, map_location={"cuda:0": f"cuda:{rank}"}, weights_only=True))
    close(state_of(model), state_of(mlp()), 0)


@check
def a_checkpoint_is_written_by_all_and_read_by_all(rank):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer)
    assert "0.weight" in weights and "0.weight" in moments["state"]
    metadata = dcp.save({"model": weights, "optimizer": moments, "epoch": 3 + rank}, checkpoint_id=ddp_case.FOLDER / "together")
    files = sorted(p.name for p in (ddp_case.FOLDER / "together").iterdir())
    assert files == [".metadata", "__0_0.distcp", "__1_0.distcp"], files
    pieces = [index.fqn for index in metadata.storage_data]
    assert len(pieces) == len(set(pieces)) == len(metadata.state_dict_metadata)

    fresh = DDP(mlp())
    other = torch.optim.Adam(fresh.parameters(), lr=0.7)
    weights, moments = get_state_dict(fresh, other)
    wanted = {"model": weights, "optimizer": moments, "epoch": None}
    dcp.load(wanted, checkpoint_id=ddp_case.FOLDER / "together")
    set_state_dict(fresh, other, model_state_dict=wanted["model"], optim_state_dict=wanted["optimizer"])
    close(state_of(fresh), state_of(model), 0)
    assert other.param_groups[0]["lr"] == 0.1 and wanted["epoch"] == 3
    for mine, theirs in zip(other.state.values(), optimizer.state.values()):
        close(mine["exp_avg"], theirs["exp_avg"], 0)


@check
def a_checkpoint_that_fails_on_one_worker_fails_on_all(rank):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.api import CheckpointException

    dcp.save({"w": torch.ones(2)}, checkpoint_id=ddp_case.FOLDER / "small")
    wanted = {"w": torch.zeros(2)} if rank == 0 else {"v": torch.zeros(2)}
    with raises(CheckpointException, "(RANK 1)"):
        dcp.load(wanted, checkpoint_id=ddp_case.FOLDER / "small")
