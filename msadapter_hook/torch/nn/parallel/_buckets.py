# Gradient buckets: which parameters travel together, the flat tensor they travel in, and what a communication hook sees of it.
# Also tensors of all processes made equal to those of one: coalesced broadcasts, and the check that the models are alike.
from enum import Enum

from ... import cat, empty, frombuffer, int64, no_grad, sparse_coo_tensor, tensor, zeros
from ...futures import Future

__all__ = ["Bucket", "BuiltinCommHookType", "GradBucket", "assign", "broadcast_coalesced", "verify_same_shapes"]


class Bucket:
    """Parameters of one dtype whose gradients are reduced as one flat tensor.

    `places`: their numbers among the parameters of the reducer. `pending`: how many gradients are still to come.
    `views`: with `shared`, tensors over the memory of `flat`, which become the gradients themselves.
    """

    def __init__(self, index, places, params, shared):
        self.index = index
        self.places = places
        self.params = params
        self.is_last = False
        self.sizes = [p.numel() for p in params]
        self.pending = len(params)
        self.flat = None
        self.future = None
        self.views = None
        self.shared = shared

    def reset(self):
        """Make ready for the next backward."""
        self.pending = len(self.params)
        self.future = None
        if not self.shared:
            self.flat = None

    def gather(self, divisor):
        """Put the gradients into `flat`, divided; a parameter without one counts as zeros."""
        pieces = [p.grad.reshape(-1) if p.grad is not None else zeros(n, dtype=p.dtype, device=p.device)
                  for p, n in zip(self.params, self.sizes)]
        joined = cat(pieces)
        if divisor != 1:
            joined.div_(divisor)
        if not self.shared:
            self.flat = joined
            return
        if self.flat is None:
            self.flat, self.views = _over_one_memory(self.params, self.sizes)
        self.flat.copy_(joined)

    def average(self, group):
        """Start the average of the gradients over the group; `future` is what to wait for."""
        from ... import distributed as dist

        self.gather(dist.get_world_size(group))
        self.future = dist.all_reduce(self.flat, group=group, async_op=True).get_future()

    def hand_out(self, reduced, skip):
        """Give the parameters the reduced gradients, in place where there is one; `skip`: places that keep what they have."""
        if self.shared:
            if reduced is not self.flat:
                self.flat.copy_(reduced.reshape(-1))
            for place, p, view in zip(self.places, self.params, self.views):
                if place not in skip:
                    p.grad = view
            return
        for place, p, piece in zip(self.places, self.params, reduced.reshape(-1).split(self.sizes)):
            if place in skip:
                continue
            if p.grad is None:
                p.grad = piece.view(p.shape).clone()
            else:
                p.grad.copy_(piece.view(p.shape))


class SparseBucket(Bucket):
    """A parameter whose gradients are sparse (COO). Their rows are gathered from all processes and added up."""

    def gather(self, divisor):
        (p,) = self.params
        self.flat = p.grad if p.grad is not None else _no_rows(p)
        if divisor != 1:
            self.flat = self.flat / divisor

    def average(self, group):
        from ... import distributed as dist

        self.gather(dist.get_world_size(group))
        mine = self.flat.coalesce()
        counts = [count for (count,) in _every(dist, [mine.indices().shape[1]], dist.get_world_size(group), group)]
        indices = _joined(dist, mine.indices().t(), counts, group).t()
        values = _joined(dist, mine.values(), counts, group)
        self.future = Future()
        self.future.set_result([sparse_coo_tensor(indices, values, tuple(mine.shape)).coalesce()])

    def hand_out(self, reduced, skip):
        if self.places[0] not in skip:
            self.params[0].grad = reduced


def _no_rows(p):
    return sparse_coo_tensor(empty((1, 0), dtype=int64), empty((0, *p.shape[1:]), dtype=p.dtype), tuple(p.shape))


def _joined(dist, rows, counts, group):
    """The rows of all processes, one after another; each has its own count."""
    padded = empty((max(counts), *rows.shape[1:]), dtype=rows.dtype)
    padded[: rows.shape[0]] = rows
    parts = [empty(tuple(padded.shape), dtype=rows.dtype) for _ in counts]
    dist.all_gather(parts, padded, group=group)
    return cat([part[:count] for part, count in zip(parts, counts)])


def _over_one_memory(params, sizes):
    # Gradients that lie in the bucket's memory without being views of one tensor: a write to one of them, of a
    # functional storage, would otherwise compute the whole bucket anew.
    first = params[0]
    flat = empty(sum(sizes), dtype=first.dtype, device=first.device)
    memory, item, at, views = flat.untyped_storage().numpy_bytes(), first.element_size(), 0, []
    for p, n in zip(params, sizes):
        views.append(frombuffer(memory, dtype=p.dtype, count=n, offset=at * item).view(p.shape) if n else empty(p.shape, dtype=p.dtype))
        at += n
    return flat, views


class GradBucket:
    """What a communication hook gets: the gradients of one bucket, not yet averaged. Source: PyTorch, torch.distributed.GradBucket."""

    __module__ = "torch._C._distributed_c10d"

    def __init__(self, bucket):
        self._bucket = bucket
        self._buffer = bucket.flat

    def index(self):
        """The number of the bucket; buckets are reduced in this order."""
        return self._bucket.index

    def buffer(self):
        """The flat tensor of all gradients in the bucket."""
        return self._buffer

    def set_buffer(self, buffer):
        """Let another tensor stand for the bucket in the hooks that follow."""
        self._buffer = buffer

    def gradients(self):
        """The gradients as views of the buffer, each in the shape of its parameter."""
        if self._buffer.is_sparse:
            return [self._buffer]
        pieces = self._buffer.reshape(-1).split(self._bucket.sizes)
        return [piece.view(p.shape) for piece, p in zip(pieces, self._bucket.params)]

    def parameters(self):
        """The parameters of the bucket, in the order of `gradients()`."""
        return list(self._bucket.params)

    def is_last(self):
        """Whether this bucket is the last of the backward pass."""
        return self._bucket.is_last


class BuiltinCommHookType(Enum):
    """The communication hooks that need no function. Source: PyTorch, torch.distributed.BuiltinCommHookType."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


def assign(params, limits, shared, sparse=()):
    """Buckets of the parameters, last ones first since their gradients come first; one dtype and device in each.

    `limits`: bytes of the first, second, … bucket; the last number holds for all that follow. `sparse`: places of parameters with
    sparse gradients, each in a bucket of its own.
    """
    limits, open_groups, filled = list(limits), {}, [[place] for place in sparse]
    for place in reversed(range(len(params))):
        if place in sparse:
            continue
        p = params[place]
        key = (p.dtype, str(p.device))
        places, size, number = open_groups.get(key, ([], 0, 0))
        places.append(place)
        size += p.numel() * p.element_size()
        if size >= limits[min(number, len(limits) - 1)]:
            filled.append(places)
            open_groups[key] = ([], 0, number + 1)
        else:
            open_groups[key] = (places, size, number)
    filled += [places for places, _, _ in open_groups.values() if places]
    filled.sort(key=lambda places: -places[0])
    buckets = [(SparseBucket if places[0] in sparse else Bucket)(i, places, [params[k] for k in places], shared)
               for i, places in enumerate(filled)]
    buckets[-1].is_last = True
    return buckets


def broadcast_coalesced(group, tensors, size, source):
    """Make `tensors` equal to those of rank `source` of the group, several in one broadcast: at most `size` bytes each."""
    from ... import distributed as dist

    chosen = dist.get_global_rank(group, source)
    mine = dist.get_rank() == chosen
    with no_grad():
        for batch in _batches(tensors, size):
            flat = cat([t.detach().reshape(-1) for t in batch])
            dist.broadcast(flat, src=chosen, group=group)
            if not mine:
                for t, piece in zip(batch, flat.split([t.numel() for t in batch])):
                    t.copy_(piece.view(t.shape))


def _batches(tensors, size):
    # by dtype, in the order in which the dtypes appear
    open_batches = {}
    for t in tensors:
        batch, filled = open_batches.get(t.dtype, ([], 0))
        need = t.numel() * t.element_size()
        if batch and filled + need > size:
            yield batch
            batch, filled = [], 0
        batch.append(t)
        open_batches[t.dtype] = (batch, filled + need)
    yield from (batch for batch, _ in open_batches.values())


def verify_same_shapes(group, params):
    """RuntimeError on every rank where the processes of a group do not hold parameters of the same shapes, in the same order."""
    from ... import distributed as dist

    rank, world = dist.get_rank(group), dist.get_world_size(group)
    if world == 1:
        return
    table = [number for p in params for number in (p.dim(), *p.shape)]
    counts = _every(dist, [len(params), len(table)], world, group)
    for other, (many, _) in enumerate(counts):
        if many != len(params):
            raise RuntimeError(f"DDP expects same model across all ranks, but Rank {rank} has {len(params)} params, while rank {other} "
                               f"has inconsistent {many} params.")
    longest = max(length for _, length in counts)
    tables = _every(dist, table + [-1] * (longest - len(table)), world, group)
    for other, theirs in enumerate(tables):
        at = 0
        for i, p in enumerate(params):
            end = at + 1 + p.dim()
            if theirs[at:end] != table[at:end]:
                shape = theirs[at + 1: at + 1 + theirs[at]]
                raise RuntimeError(f"DDP expects same model across all ranks: params[{i}] in this process (rank {rank}) with sizes "
                                   f"{list(p.shape)} appears not to match sizes of the same param in process {other}: {shape}.")
            at = end


def _every(dist, numbers, world, group):
    mine = tensor(numbers, dtype=int64)
    rows = [empty(len(numbers), dtype=int64) for _ in range(world)]
    dist.all_gather(rows, mine, group=group)
    return [row.tolist() for row in rows]
