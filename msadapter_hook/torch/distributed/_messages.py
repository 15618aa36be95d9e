# Messages from one process to another.
import numpy as np

from ._collectives import array_of, check_tensor, write
from ._group import ProcessGroup, Received, Work
from ._groups import _get_default_group, _group_or_default_group
from ._ranks import destination_in, group_for, rank_in, sources_in

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send to a process; gives a Work, or None outside the group. The tensor may be changed at once. Source: PyTorch,
    torch.distributed.isend."""
    check_tensor(tensor, "tensor")
    pg = group_for("isend", group)
    if pg is None:
        return None
    destination = destination_in(pg, dst, group_dst)
    pg._mail.send(array_of(tensor), destination, pg.group_name, tag)
    return Work([tensor])


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send to a process. Returns when the message has arrived there. Source: PyTorch, torch.distributed.send."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive from a process, or from any where none is named; gives a Work, or None outside the group. Source: PyTorch,
    torch.distributed.irecv."""
    check_tensor(tensor, "tensor")
    pg = group_for("irecv", group)
    if pg is None:
        return None
    sources = sources_in(pg, src, group_src)

    def finish(message):
        wanted = np.dtype(tensor.dtype.numpy)
        if message.data.nbytes != tensor.numel() * wanted.itemsize:
            raise RuntimeError(f"recv: the message from rank {message.source} has {message.data.nbytes} bytes, the tensor of shape "
                               f"{tuple(tensor.shape)} and {tensor.dtype} takes {tensor.numel() * wanted.itemsize}")
        write(tensor, message.data.view(wanted))

    return Received(tensor, pg._mail.wish(sources, pg.group_name, tag), pg, finish)


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive from a process, or from any where none is named. Gives the world rank of the sender, -1 outside the group. Source:
    PyTorch, torch.distributed.recv."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work._receipt.message.source


class P2POp:
    """One message for batch_isend_irecv (PyTorch, torch.distributed.P2POp). op: isend or irecv; peer: a world rank."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        check_tensor(tensor, "tensor")
        pg = _group_or_default_group(group)
        self.op, self.tensor, self.group, self.tag = op, tensor, pg, tag
        self.group_peer = rank_in(pg, peer, group_peer, "send") if isinstance(pg, ProcessGroup) else peer
        self.peer = pg._ranks[self.group_peer] if isinstance(pg, ProcessGroup) else peer

    def __repr__(self):
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, peer={self.peer}, {tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list):
    """Start all messages of a list; gives their Works. Source: PyTorch, torch.distributed.batch_isend_irecv."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise IndexError("list index out of range")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    _get_default_group()
    return [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]


P2POp.__module__ = __package__ + ".distributed_c10d"
