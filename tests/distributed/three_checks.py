"""What three workers check: groups of some of them, messages from anybody, rings; test_collectives.py starts them."""

import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

CHECKS = {}
SIZE = 3


def check(function):
    CHECKS[function.__name__] = function
    return function


@check
def groups_of_two(rank):
    groups = {pair: dist.new_group(list(pair)) for pair in ((0, 1), (0, 2), (1, 2))}
    for pair, group in groups.items():
        if rank in pair:
            tensor = torch.tensor([rank + 1.0])
            dist.all_reduce(tensor, group=group)
            assert float(tensor) == sum(pair) + 2
            dist.broadcast(tensor.fill_(rank), src=pair[1], group=group)
            assert float(tensor) == pair[1]
            out = [torch.zeros(2, dtype=torch.float64) for _ in pair]
            dist.all_gather(out, torch.full((2,), float(rank), dtype=torch.float64), group=group)
            assert [float(t[0]) for t in out] == list(pair)
            dist.reduce(tensor.fill_(rank), dst=pair[0], op=dist.ReduceOp.MAX, group=group)
            assert float(tensor) == (pair[1] if rank == pair[0] else rank)
            got = [None, None]
            dist.all_gather_object(got, rank, group=group)
            assert got == list(pair)


@check
def messages_from_anybody(rank):
    if rank == 0:
        got = []
        for _ in range(2):
            tensor = torch.zeros(1)
            source = dist.recv(tensor)
            assert float(tensor) == source * 10
            got.append(source)
        assert sorted(got) == [1, 2]
    else:
        dist.send(torch.tensor([rank * 10.0]), 0)


@check
def ring(rank):
    value = torch.tensor([float(rank)])
    total = value.clone()
    for _ in range(SIZE - 1):
        got = torch.zeros(1)
        waiting = dist.irecv(got, (rank - 1) % SIZE)
        dist.send(value, (rank + 1) % SIZE)
        waiting.wait()
        value = got
        total += got
    assert float(total) == 3.0


@check
def collectives_of_three(rank):
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
        for length in (1, 2, 3, 7):
            tensor = (torch.arange(length) + rank).to(dtype)
            dist.all_reduce(tensor)
            assert torch.equal(tensor, (3 * torch.arange(length) + 3).to(dtype)), (dtype, length, tensor)
    out = torch.zeros(SIZE, dtype=torch.int64)
    dist.all_to_all_single(out, torch.arange(SIZE) + 10 * rank)
    assert out.tolist() == [10 * r + rank for r in range(SIZE)]
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.arange(6.0))
    assert out.tolist() == [6.0 * rank, 6.0 * rank + 3]
    got = [torch.zeros(1) for _ in range(SIZE)] if rank == 1 else None
    dist.gather(torch.tensor([float(rank)]), got, 1)
    assert got is None or [float(t) for t in got] == [0.0, 1.0, 2.0]


@check
def one_that_does_not_come(rank):
    if rank == 2:
        dist.barrier()
        return
    pair = dist.new_group([0, 1], use_local_synchronization=True)
    if rank == 0:
        try:
            dist.monitored_barrier(pair, timeout=timedelta(seconds=0.3))
        except RuntimeError as error:
            assert "Ranks 1 failed to pass monitoredBarrier" in str(error)
        else:
            raise AssertionError("the barrier was passed")
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    report = {}
    for name, function in CHECKS.items():
        try:
            function(dist.get_rank())
            report[name] = None
        except Exception:
            report[name] = traceback.format_exc()
        dist.barrier()  # a message of the next check must not reach one who takes messages from anybody in this one
    Path(sys.argv[1], f"results_{dist.get_rank()}.json").write_text(json.dumps(report))
    dist.destroy_process_group()
