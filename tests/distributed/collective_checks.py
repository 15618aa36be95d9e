"""What two workers check of torch.distributed's collectives, messages and groups; test_collectives.py starts them once and reads what
they report.

Each check is called on both workers at the same time, with the rank. Right values follow from the definition: what each rank gives
is known to all. Errors are those of PyTorch with gloo.
"""

import json
import sys
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

SIZE = 2
CHECKS = {}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = FLOATS + INTEGERS + COMPLEX
OPS = dist.ReduceOp


def check(function):
    CHECKS[function.__name__] = function
    return function


def for_each(values, name=str):
    """A check for each of the values, named after it; the function takes (rank, value)."""

    def register(function):
        for value in values:
            label = f"{function.__name__}[{name(value)}]"
            CHECKS[label] = lambda rank, value=value: function(rank, value)
        return function

    return register


def given(rank, dtype, shape=(2, 3)):
    """What a rank gives: the same wherever it is computed."""
    length = 1
    for n in shape:
        length *= n
    values = torch.arange(length).reshape(shape) * (rank + 1) + rank + 1
    if dtype.is_complex:
        return torch.complex(values.double(), values.double() - 2).to(dtype)
    return (values % 2 if dtype is torch.bool else values).to(dtype)


def same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, f"{got} is not {wanted}"
    assert torch.equal(got, wanted), f"{got} is not {wanted}"


def error(kind, text, function):
    try:
        function()
    except kind as raised:
        assert text in str(raised), str(raised)
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def reduced(op, dtype, shape=(2, 3)):
    """The reduction of what all ranks give, written out."""
    a, b = given(0, dtype, shape), given(1, dtype, shape)
    if dtype is torch.bool:
        return {"SUM": a | b, "MAX": a | b, "BOR": a | b, "PRODUCT": a & b, "MIN": a & b, "BAND": a & b, "BXOR": a ^ b}[op]
    return {
        "SUM": lambda: a + b, "AVG": lambda: (a + b) / 2, "PRODUCT": lambda: a * b, "MIN": lambda: torch.minimum(a, b),
        "MAX": lambda: torch.maximum(a, b), "BAND": lambda: a & b, "BOR": lambda: a | b, "BXOR": lambda: a ^ b,
    }[op]()


def ops_of(dtype):
    if dtype.is_complex:
        return ["SUM", "AVG"]
    return ["SUM", "PRODUCT", "MIN", "MAX", *(["AVG"] if dtype.is_floating_point else ["BAND", "BOR", "BXOR"])]


# ---------------------------------------------------------------------------------------- every collective, every dtype
@for_each(DTYPES)
def all_reduce(rank, dtype):
    for op in ops_of(dtype):
        for shape in ((2, 3), (), (1,), (5,)):
            tensor = given(rank, dtype, shape)
            assert dist.all_reduce(tensor, getattr(OPS, op)) is None
            same(tensor, reduced(op, dtype, shape))


@for_each(DTYPES)
def reduce(rank, dtype):
    for dst in range(SIZE):
        tensor = given(rank, dtype)
        dist.reduce(tensor, dst)
        if rank == dst:
            same(tensor, reduced("SUM", dtype))


@for_each(DTYPES)
def broadcast(rank, dtype):
    for src in range(SIZE):
        tensor = given(rank, dtype)
        dist.broadcast(tensor, src)
        same(tensor, given(src, dtype))


@for_each(DTYPES)
def all_gather(rank, dtype):
    out = [torch.zeros(2, 3, dtype=dtype) for _ in range(SIZE)]
    dist.all_gather(out, given(rank, dtype))
    for r in range(SIZE):
        same(out[r], given(r, dtype))
    joined, stacked = torch.zeros(2 * SIZE, 3, dtype=dtype), torch.zeros(SIZE, 2, 3, dtype=dtype)
    dist.all_gather_into_tensor(joined, given(rank, dtype))
    same(joined, torch.cat([given(r, dtype) for r in range(SIZE)]))
    dist.all_gather_into_tensor(stacked, given(rank, dtype))
    same(stacked, torch.stack([given(r, dtype) for r in range(SIZE)]))


@for_each(DTYPES)
def gather(rank, dtype):
    for dst in range(SIZE):
        out = [torch.zeros(2, 3, dtype=dtype) for _ in range(SIZE)] if rank == dst else None
        dist.gather(given(rank, dtype), out, dst)
        for r, tensor in enumerate(out or ()):
            same(tensor, given(r, dtype))


@for_each(DTYPES)
def scatter(rank, dtype):
    for src in range(SIZE):
        tensor = torch.zeros(2, 3, dtype=dtype)
        dist.scatter(tensor, [given(r, dtype) for r in range(SIZE)] if rank == src else None, src)
        same(tensor, given(rank, dtype))


@for_each(DTYPES)
def reduce_scatter(rank, dtype):
    for op in ops_of(dtype):
        wanted = reduced(op, dtype, (4, 3)).chunk(SIZE)[rank]
        out = torch.zeros(2, 3, dtype=dtype)
        dist.reduce_scatter(out, list(given(rank, dtype, (4, 3)).chunk(SIZE)), getattr(OPS, op))
        same(out, wanted)
        out = torch.zeros(2, 3, dtype=dtype)
        dist.reduce_scatter_tensor(out, given(rank, dtype, (4, 3)), getattr(OPS, op))
        same(out, wanted)


@for_each(DTYPES)
def all_to_all(rank, dtype):
    def part(source, target, rows):
        return given(source * SIZE + target, dtype, (rows, 2))

    out = [torch.zeros(3, 2, dtype=dtype) for _ in range(SIZE)]
    dist.all_to_all(out, [part(rank, r, 3) for r in range(SIZE)])
    for r in range(SIZE):
        same(out[r], part(r, rank, 3))
    # rank r sends 1 row to rank 0 and 2 to rank 1
    out = torch.zeros(SIZE * (rank + 1), 2, dtype=dtype)
    dist.all_to_all_single(out, torch.cat([part(rank, r, r + 1) for r in range(SIZE)]), [rank + 1] * SIZE, [1, 2])
    same(out, torch.cat([part(r, rank, rank + 1) for r in range(SIZE)]))
    out = torch.zeros(4, 2, dtype=dtype)
    dist.all_to_all_single(out, torch.cat([part(rank, r, 2) for r in range(SIZE)]))
    same(out, torch.cat([part(r, rank, 2) for r in range(SIZE)]))


@for_each(DTYPES)
def send_and_receive(rank, dtype):
    if rank == 0:
        dist.send(given(0, dtype), 1)
        tensor = torch.zeros(2, 3, dtype=dtype)
        assert dist.recv(tensor, 1) == 1
        same(tensor, given(1, dtype))
    else:
        tensor = torch.zeros(2, 3, dtype=dtype)
        assert dist.recv(tensor) == 0
        same(tensor, given(0, dtype))
        dist.send(given(1, dtype), 0)


@check
def empty_and_large_tensors(rank):
    empty = torch.zeros(0, 3)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    out = [torch.zeros(0, 3) for _ in range(SIZE)]
    dist.all_gather(out, empty)
    large = torch.full((5_000_003,), float(rank + 1))
    dist.all_reduce(large)
    assert bool((large == 3).all())
    dist.broadcast(large.fill_(rank), 1)
    assert bool((large == 1).all())


# ---------------------------------------------------------------------------------------- tensors
@check
def views_are_written_through(rank):
    base = torch.arange(6.0).reshape(2, 3) + rank
    dist.all_reduce(base.t())
    same(base, torch.arange(6.0).reshape(2, 3) * 2 + 1)
    base = torch.full((6,), float(rank))
    dist.broadcast(base[::2], 1)
    same(base, torch.tensor([1.0, rank, 1, rank, 1, rank]))


@check
def parameters_and_graphs(rank):
    leaf = torch.full((2,), float(rank + 1), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_reduce(leaf)
        assert leaf.is_leaf and leaf.requires_grad
        same(leaf.detach(), torch.full((2,), 3.0))
        (leaf * leaf).sum().backward()
        same(leaf.grad, torch.full((2,), 6.0))


@check
def handles(rank):
    tensor = torch.full((2,), float(rank + 1))
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait() is True and work.is_completed() and work.is_success() and work.exception() is None
    same(tensor, torch.full((2,), 3.0))
    assert work.get_future().wait()[0] is tensor
    assert work.get_future().then(lambda future: future.value()[0].sum().item()).wait() == 6.0
    assert dist.barrier(async_op=True).wait()
    out = [torch.zeros(2) for _ in range(SIZE)]
    assert dist.all_gather(out, tensor, async_op=True).wait()
    same(out[1], tensor)


# ---------------------------------------------------------------------------------------- messages
@check
def messages_by_tag(rank):
    if rank == 1:
        for tag in (3, 7):
            dist.send(torch.full((2,), float(tag)), 0, tag=tag)
    else:
        seven, three = torch.zeros(2), torch.zeros(2)
        dist.recv(seven, 1, tag=7)
        dist.recv(three, 1, tag=3)
        same(torch.stack([seven, three]), torch.tensor([[7.0, 7.0], [3.0, 3.0]]))


@check
def messages_in_order(rank):
    if rank == 1:
        for i in range(5):
            dist.isend(torch.tensor([i]), 0).wait()
    else:
        got = [torch.zeros(1, dtype=torch.int64) for _ in range(5)]
        works = [dist.irecv(tensor, 1) for tensor in got]
        for work in reversed(works):
            work.wait()
        assert [int(tensor) for tensor in got] == list(range(5))


@check
def messages_both_ways(rank):
    got = torch.zeros(3)
    waiting = dist.irecv(got, 1 - rank)
    dist.isend(torch.full((3,), float(rank)), 1 - rank).wait()
    assert waiting.wait() and waiting.is_completed()
    same(got, torch.full((3,), float(1 - rank)))
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((3,), rank + 5.0), 1 - rank),
                                    dist.P2POp(dist.irecv, got, 1 - rank)])
    for work in works:
        work.wait()
    same(got, torch.full((3,), 6.0 - rank))


@check
def messages_around_collectives(rank):
    """What a process has sent waits for its receiver, whatever collectives come in between."""
    total = torch.ones(4)
    if rank == 1:
        dist.isend(torch.tensor([5.0]), 0)
        dist.all_reduce(total)
        dist.isend(torch.tensor([6.0]), 0)
        dist.broadcast(total, 0)
    else:
        dist.all_reduce(total)
        dist.broadcast(total, 0)
        got = [torch.zeros(1), torch.zeros(1)]
        for tensor in got:
            dist.recv(tensor, 1)
        assert [float(t) for t in got] == [5.0, 6.0]
    same(total, torch.full((4,), 2.0))


@check
def completion_can_be_polled(rank):
    got = torch.zeros(1)
    if rank == 0:
        work = dist.irecv(got, 1)
        assert not work.is_completed()
        dist.barrier()
        end = time.monotonic() + 120
        while not work.is_completed() and time.monotonic() < end:
            time.sleep(0.001)
        assert work.is_completed() and float(got) == 4.0 and work.source_rank() == 1
    else:
        dist.barrier()
        dist.send(torch.tensor([4.0]), 0)


@check
def messages_of_another_size(rank):
    if rank == 1:
        dist.send(torch.zeros(3), 0)
    else:
        error(RuntimeError, "12 bytes", lambda: dist.recv(torch.zeros(2), 1))


# ---------------------------------------------------------------------------------------- objects
@check
def objects(rank):
    got = [None] * SIZE
    dist.all_gather_object(got, {"rank": rank, "words": ["a"] * (rank * 1000)})
    assert [len(one["words"]) for one in got] == [0, 1000]
    for dst in range(SIZE):
        got = [None] * SIZE if rank == dst else None
        dist.gather_object(("of", rank), got, dst)
        assert got is None or got == [("of", 0), ("of", 1)]
    for src in range(SIZE):
        got = [rank, "x" * rank, None]
        dist.broadcast_object_list(got, src)
        assert got == [src, "x" * src, None]
        got = [None]
        dist.scatter_object_list(got, ["zero", {"one": 1}] if rank == src else None, src)
        assert got == [["zero", {"one": 1}][rank]]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    else:
        got = [None, None]
        assert dist.recv_object_list(got, 0) == 0 and got == [1, "two"]


# ---------------------------------------------------------------------------------------- groups
@check
def groups(rank):
    both, first, second = dist.new_group(), dist.new_group([0]), dist.new_group([1])
    mine, other = (first, second) if rank == 0 else (second, first)
    assert other == dist.GroupMember.NON_GROUP_MEMBER
    assert dist.get_rank(other) == -1 and dist.get_world_size(other) == -1
    assert dist.get_rank(mine) == 0 and dist.get_world_size(mine) == 1 and dist.get_process_group_ranks(mine) == [rank]
    assert dist.get_global_rank(mine, 0) == rank and dist.get_group_rank(mine, rank) == 0
    tensor = torch.full((2,), float(rank + 1))
    dist.all_reduce(tensor, group=mine)
    same(tensor, torch.full((2,), float(rank + 1)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dist.all_reduce(tensor, group=other) is None
    assert f"Running all_reduce on global rank {rank} which does not belong to the given group." in str(caught[0].message)
    dist.all_reduce(tensor, group=both)
    same(tensor, torch.full((2,), 3.0))
    own, listed = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(own) == [rank] and len(listed) == SIZE
    local = dist.new_group([0, 1], use_local_synchronization=True)
    dist.all_reduce(tensor, group=local)
    same(tensor, torch.full((2,), 6.0))
    count = dist.get_pg_count()
    dist.destroy_process_group(local)
    dist.new_group([0, 1])
    assert dist.get_pg_count() == count + 1
    error(ValueError, "is not registered", lambda: dist.get_rank(local))


@check
def unsorted_groups(rank):
    turned = dist.new_group([1, 0], sort_ranks=False)
    assert dist.get_process_group_ranks(turned) == [1, 0] and dist.get_rank(turned) == 1 - rank
    out = [torch.zeros(1) for _ in range(SIZE)]
    dist.all_gather(out, torch.tensor([float(rank)]), group=turned)
    assert [float(t) for t in out] == [1.0, 0.0]
    tensor = torch.tensor([float(rank)])
    dist.broadcast(tensor, group_src=0, group=turned)
    assert float(tensor) == 1.0
    own = torch.zeros(1)
    dist.scatter(own, [torch.tensor([10.0]), torch.tensor([20.0])] if rank == 1 else None, src=1, group=turned)
    assert float(own) == [20.0, 10.0][rank]


@check
def questions(rank):
    assert dist.is_available() and dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, SIZE, "gloo")
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    world = dist.group.WORLD
    assert world is dist.GroupMember.WORLD and (world.rank(), world.size(), world.name()) == (rank, SIZE, "gloo")
    assert dist.get_process_group_ranks(None) == [0, 1] and dist.is_torchelastic_launched()
    assert dist.get_node_local_rank() == rank
    assert dist.distributed_c10d._get_default_group() is world


# ---------------------------------------------------------------------------------------- errors
@check
def wrong_arguments(rank):
    ones = torch.ones(2)
    error(TypeError, "Expected parameter `tensor` of type torch.Tensor", lambda: dist.all_reduce([1.0]))
    error(TypeError, "ReduceOp", lambda: dist.all_reduce(ones, op="sum"))
    error(ValueError, "does not support RedOpType.MAX on complex", lambda: dist.all_reduce(ones.to(torch.complex64), OPS.MAX))
    error(RuntimeError, "Cannot use ReduceOp.BAND with non-integral dtype", lambda: dist.all_reduce(ones, OPS.BAND))
    error(RuntimeError, "result type Float can't be cast", lambda: dist.all_reduce(ones.int(), OPS.AVG))
    error(ValueError, "Must specify global_rank or group_rank", lambda: dist.broadcast(ones))
    error(ValueError, "Can't specify both", lambda: dist.broadcast(ones, 0, group_src=0))
    error(RuntimeError, "invalid root rank: 5", lambda: dist.broadcast(ones, 5))
    error(ValueError, "Invalid usage of tensors with different dtypes", lambda: dist.all_gather([ones, ones.double()], ones))
    error(RuntimeError, "expected length 2, got 1", lambda: dist.all_gather([ones], ones))
    error(RuntimeError, "invalid tensor size at index 1 (expected (2), got (3))", lambda: dist.all_gather([ones, torch.ones(3)], ones))
    error(RuntimeError, "output tensor size must be equal to world_size", lambda: dist.all_gather_into_tensor(torch.ones(3), ones))
    error(RuntimeError, "input tensor must be the same size", lambda: dist.reduce_scatter_tensor(ones, torch.ones(3)))
    error(RuntimeError, "Tensor's dim 0 does not divide equally", lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)))
    error(RuntimeError, "Split sizes doesn't match", lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 2], [2, 2]))
    error(ValueError, "destination rank should not be the same", lambda: dist.send(ones, rank))
    error(ValueError, "source rank should not be the same", lambda: dist.recv(ones, rank))
    error(ValueError, "Invalid ``op``", lambda: dist.P2POp(dist.all_reduce, ones, 1 - rank))
    error(ValueError, "must not contain duplicate entries", lambda: dist.new_group([0, 0]))
    error(ValueError, "Rank 7 is out of range", lambda: dist.new_group([0, 7]))
    error(AssertionError, "Unknown backend type foo", lambda: dist.new_group([0, 1], backend="foo"))
    error(ValueError, "twice", lambda: dist.init_process_group("gloo"))
    if rank == 0:
        error(ValueError, "must be specified on destination rank", lambda: dist.gather(ones, dst=0))
        error(ValueError, "must NOT be specified on non-source", lambda: dist.scatter(ones, [ones, ones], src=1))


@check
def collectives_that_do_not_match(rank):
    started = time.monotonic()
    error(dist.DistBackendError, "rank 0: all_reduce((1,), torch.float32) RedOpType.SUM; rank 1: all_reduce((2,), torch.float32)",
          lambda: dist.all_reduce(torch.ones(rank + 1)))
    error(dist.DistBackendError, "different collectives",
          lambda: dist.barrier() if rank else dist.broadcast(torch.ones(1), 0))
    assert time.monotonic() - started < 120
    work = dist.all_reduce(torch.ones(rank + 1), async_op=True)
    assert not work.is_success() and isinstance(work.exception(), dist.DistBackendError)
    error(dist.DistBackendError, "different collectives", work.wait)


@check
def barriers_that_name_the_missing(rank):
    quick = dist.new_group(timeout=timedelta(seconds=0.5))
    if rank == 0:
        started = time.monotonic()
        error(RuntimeError, "Ranks 1 failed to pass monitoredBarrier in 500 ms", lambda: dist.monitored_barrier(quick))
        error(RuntimeError, "Timed out waiting 500ms for recv from rank 1", lambda: dist.recv(torch.ones(1), 1, group=quick))
        assert time.monotonic() - started < 120
        quick = dist.new_group(timeout=timedelta(seconds=0.5))
        error(RuntimeError, "not there: rank 1", lambda: dist.all_reduce(torch.ones(1), group=quick))
    else:
        dist.new_group(timeout=timedelta(seconds=0.5))
    dist.monitored_barrier(timeout=timedelta(seconds=300))


@check
def groups_can_be_made_anew(rank):
    dist.destroy_process_group()
    assert not dist.is_initialized() and dist.group.WORLD is None
    error(ValueError, "Default process group has not been initialized", lambda: dist.all_reduce(torch.ones(1)))
    error(ValueError, "Default process group has not been initialized", dist.get_rank)
    folder = Path(sys.argv[1])
    dist.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=rank, world_size=SIZE)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert float(tensor) == 2.0 and dist.get_backend() == "nccl"
    dist.destroy_process_group()
    store = dist.FileStore(str(folder / "store"), SIZE)
    dist.init_process_group(store=store, rank=rank, world_size=SIZE)
    dist.all_reduce(tensor)
    assert float(tensor) == 4.0 and dist.get_backend() == "undefined"
    for _ in range(2):  # at the address where the first one was
        dist.destroy_process_group()
        dist.init_process_group("gloo")
        dist.all_reduce(tensor.fill_(1))
        assert float(tensor) == 2.0


def run(rank):
    report = {}
    for name, function in CHECKS.items():
        try:
            function(rank)
            report[name] = None
        except Exception:
            report[name] = traceback.format_exc()
        Path(sys.argv[1], f"results_{rank}.json").write_text(json.dumps(report))
    return report


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    run(dist.get_rank())
    dist.destroy_process_group()
