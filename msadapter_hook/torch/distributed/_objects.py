# Collectives of picklable objects: their pickles travel as bytes. As with PyTorch: only between processes that trust each other.
import io
import pickle

import numpy as np

from ._group import Received
from ._ranks import check_one_sided, destination_in, group_for, root_in, sources_in

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list", "send_object_list"]


def _dump(obj):
    file = io.BytesIO()
    pickle.Pickler(file).dump(obj)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


def _load(array):
    return pickle.Unpickler(io.BytesIO(array.tobytes())).load()


def _lengths(circle, arrays):
    """For each process the lengths of its arrays (all have as many)."""
    return [list(map(int, one)) for one in circle.all_gather(np.array([a.size for a in arrays], np.int64))]


def all_gather_object(object_list, obj, group=None):
    """The objects of all processes into `object_list`, a list of the group's size. Source: PyTorch,
    torch.distributed.all_gather_object."""
    pg = group_for("all_gather_object", group)
    if pg is None:
        return
    circle = pg._circle
    circle.meet("all_gather_object")
    data = _dump(obj)
    lengths = [n for (n,) in _lengths(circle, [data])]
    padded = np.zeros(max(lengths), np.uint8)
    padded[: data.size] = data
    for i, (array, length) in enumerate(zip(circle.all_gather(padded), lengths)):
        object_list[i] = _load(array[:length])


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """The process `dst` (by default rank 0) gets the objects of all in `object_gather_list`. Source: PyTorch,
    torch.distributed.gather_object."""
    pg = group_for("gather_object", group)
    if pg is None:
        return
    root, circle = root_in(pg, dst, group_dst, "gather"), pg._circle
    check_one_sided(pg, root, object_gather_list, "gather_list", "destination")
    circle.meet(f"gather_object {root}")
    data = _dump(obj)
    lengths = [n for (n,) in _lengths(circle, [data])]
    for i, array in enumerate(circle.gather(data, root, lengths)):
        object_gather_list[i] = _load(array)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """All processes get the objects of the list of the process `src` (by default rank 0). Source: PyTorch,
    torch.distributed.broadcast_object_list."""
    pg = group_for("broadcast_object_list", group)
    if pg is None:
        return
    root, circle = root_in(pg, src, group_src, "broadcast"), pg._circle
    circle.meet(f"broadcast_object_list of {len(object_list)} from {root}")
    data = [_dump(obj) for obj in object_list] if pg.rank() == root else []
    lengths = np.array([a.size for a in data] or [0] * len(object_list), np.int64)
    circle.broadcast(lengths, pg._ranks[root])
    flat = np.concatenate(data) if data else np.empty(int(lengths.sum()), np.uint8)
    circle.broadcast(flat, pg._ranks[root])
    if pg.rank() != root:
        for i, array in enumerate(np.split(flat, np.cumsum(lengths)[:-1])):
            object_list[i] = _load(array)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    """The first element of the output list becomes the object of this rank in the input list of the process `src`. Source:
    PyTorch, torch.distributed.scatter_object_list."""
    pg = group_for("scatter_object_list", group)
    if pg is None:
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root, circle = root_in(pg, src, group_src, "scatter"), pg._circle
    sends = pg.rank() == root
    if sends and (scatter_object_input_list is None or len(scatter_object_input_list) != pg.size()):
        raise ValueError("scatter_object_list: the source rank needs one object for each rank of the group")
    circle.meet(f"scatter_object_list {root}")
    data = [_dump(obj) for obj in scatter_object_input_list] if sends else [None] * pg.size()
    lengths = np.array([a.size for a in data] if sends else [0] * pg.size(), np.int64)
    circle.broadcast(lengths, pg._ranks[root])
    received = np.empty(lengths[pg.rank()], np.uint8)
    circle.scatter(data, root, received)
    scatter_object_output_list[0] = _load(received)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send picklable objects to a process. Source: PyTorch, torch.distributed.send_object_list."""
    pg = group_for("send_object_list", group)
    if pg is None:
        return
    destination = destination_in(pg, dst, group_dst)
    pg._mail.send(_dump(list(object_list)), destination, pg.group_name, _TAG)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive picklable objects from a process, or from any; gives the sender's world rank. Source: PyTorch,
    torch.distributed.recv_object_list."""
    pg = group_for("recv_object_list", group)
    if pg is None:
        return -1
    sources = sources_in(pg, src, group_src)

    def finish(message):
        objects = _load(message.data)
        if len(objects) != len(object_list):
            raise RuntimeError(f"recv_object_list: {len(objects)} objects came from rank {message.source} for a list of {len(object_list)}")
        object_list[:] = objects

    work = Received(None, pg._mail.wish(sources, pg.group_name, _TAG), pg, finish)
    work.wait()
    return work._receipt.message.source


_TAG = -1  # messages of objects are not mistaken for tensors
