# Process groups and handles of asynchronous work.
import warnings

from ._circle import mailbox

__all__ = ["Backend", "BackendConfig", "GroupMember", "ProcessGroup", "Work"]


class Backend(str):
    """The name of a backend, in lower case. All of them are MindSpore's communication here (PyTorch, torch.distributed.Backend)."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    HCCL = "hccl"
    MCCL = "mccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, HCCL, MCCL]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO, "npu": HCCL}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Backends written for PyTorch's C++ interface cannot be used: NotImplementedError."""
        from msadapter_hook.errors import unsupported

        raise unsupported("torch.distributed.Backend.register_backend",
                          "all backends are MindSpore's communication; use backend='gloo'")


class BackendConfig:
    """Which backend serves which device (PyTorch, torch.distributed.BackendConfig): from "gloo" or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend):
        self.device_backend_map = {}
        if backend == Backend.UNDEFINED:
            self.device_backend_map["cpu"] = Backend.GLOO
        elif ":" in backend:
            for pair in backend.lower().split(","):
                parts = pair.split(":")
                if len(parts) != 2:
                    raise ValueError(f"Invalid device:backend pairing: {pair!r}. 'gloo' or 'cpu:gloo,cuda:nccl' is expected")
                device, name = parts
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: {backend}. Must be of the form "
                                     "<device_type1>:<backend1>,<device_type2>:<backend2>")
                self.device_backend_map[device] = Backend(name)
        else:
            self.device_backend_map = {device: Backend(backend) for device in ("cpu", "cuda")}
        for name in self.device_backend_map.values():
            if name not in Backend.backend_list:
                raise AssertionError(f"Unknown backend type {name}")

    def get_device_backend_map(self):
        return self.device_backend_map

    def __repr__(self):
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


class ProcessGroup:
    """Processes that take part in a collective (PyTorch, torch.distributed.ProcessGroup); made by init_process_group, new_group.

    ranks: world ranks in group order.
    """

    def __init__(self, circle, ranks, backend, group_name, group_desc, store):
        self._circle, self._ranks, self._backend, self._store = circle, list(ranks), backend, store
        self.group_name, self.group_desc = group_name, group_desc
        self.bound_device_id = None

    def rank(self):
        """The rank of this process in the group."""
        return self._circle.rank

    def size(self):
        return self._circle.size

    def name(self):
        return str(self._backend)

    def get_group_store(self):
        return self._store

    def set_timeout(self, timeout):
        """How long collectives of the group wait for the other processes (a timedelta)."""
        self._circle.timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    @property
    def _mail(self):
        return mailbox(self._circle.job)

    def _get_backend_name(self):
        return str(self._backend)

    def _id(self):
        return id(self)

    def shutdown(self):
        """Nothing of a group's own runs in the background."""

    abort = shutdown

    def barrier(self, opts=None):
        self._circle.meet("barrier")
        return Work([])

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        self._circle.watch(None if timeout is None else timeout.total_seconds(), wait_all_ranks)

    # the names of the collectives as methods, on lists of tensors, as PyTorch's C++ class has them
    def _do(self, name, *args, **kwargs):
        from . import distributed_c10d

        return getattr(distributed_c10d, name)(*args, group=self, async_op=True, **kwargs)

    def allreduce(self, tensors, opts=None):
        """All-reduce one tensor, or a list of one. opts: ReduceOp or AllreduceOptions."""
        from ._reduce import ReduceOp

        op = getattr(opts, "reduceOp", opts)
        return self._do("all_reduce", _only(tensors), op=ReduceOp.SUM if op is None else op)

    def broadcast(self, tensors, opts=None):
        """Broadcast one tensor, or a list of one. opts: the root's rank in the group, or BroadcastOptions."""
        return self._do("broadcast", _only(tensors), group_src=getattr(opts, "rootRank", opts) or 0)

    def allgather(self, output_tensors, input_tensor, opts=None):
        outputs = output_tensors[0] if isinstance(output_tensors[0], (list, tuple)) else output_tensors
        return self._do("all_gather", outputs, _only(input_tensor))

    def _allgather_base(self, output, input, opts=None):
        return self._do("all_gather_into_tensor", output, input)

    def send(self, tensors, dstRank, tag):
        from . import distributed_c10d

        return distributed_c10d.isend(_only(tensors), group=self, tag=tag, group_dst=dstRank)

    def recv(self, tensors, srcRank, tag):
        from . import distributed_c10d

        return distributed_c10d.irecv(_only(tensors), group=self, tag=tag, group_src=srcRank)


def _only(tensors):
    if isinstance(tensors, (list, tuple)):
        if len(tensors) != 1:
            raise ValueError("a process group's methods take one tensor of this process")
        return tensors[0]
    return tensors


class _World(type):
    @property
    def WORLD(cls):
        """The default process group, None before init_process_group."""
        from . import distributed_c10d

        return distributed_c10d._world.default_pg

    @WORLD.setter
    def WORLD(cls, pg):
        from . import distributed_c10d

        distributed_c10d._world.default_pg = pg


class group(metaclass=_World):
    """The default group by the name `group.WORLD` (PyTorch, torch.distributed.group)."""


class GroupMember(metaclass=_World):
    """What new_group gives to processes that are not in the group (PyTorch, torch.distributed.GroupMember)."""

    NON_GROUP_MEMBER = -100


class Work:
    """A collective on its way (PyTorch, torch.distributed.Work).

    On CPU a collective is done when the call returns, so that handles of collectives are complete from the start; those of
    `irecv` are complete when the message has come.
    """

    def __init__(self, tensors, error=None):
        self._tensors, self._error = tensors, error

    def wait(self, timeout=None):
        """Wait until it is done, and give True. Raises the error of the collective."""
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error

    def synchronize(self):
        self.wait()

    block_current_stream = synchronize

    def result(self):
        """The tensors that were written."""
        return list(self._tensors)

    def source_rank(self):
        raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.")

    _source_rank = source_rank

    def get_future(self):
        """A torch.futures.Future that holds the tensors."""
        from ..futures import Future

        future = Future()
        try:
            self.wait()
        except RuntimeError as error:
            future.set_exception(error)
        else:
            future.set_result(self.result())
        return future


class Received(Work):
    """A message that is awaited."""

    def __init__(self, tensor, receipt, pg, finish):
        super().__init__([tensor])
        self._receipt, self._pg, self._finish, self._done = receipt, pg, finish, False

    def _complete(self):
        if not self._done:
            self._done = True
            try:
                self._finish(self._receipt.message)
            except RuntimeError as error:
                self._error = error

    def wait(self, timeout=None):
        if not self._done:
            circle, mail, receipt = self._pg._circle, self._pg._mail, self._receipt
            seconds = circle.timeout if timeout is None or timeout.total_seconds() <= 0 else timeout.total_seconds()
            try:
                circle.job.wait(lambda: mail.has_come(receipt), receipt.sources, seconds,
                                lambda gone: f"recv from {_named(receipt.sources)}")
            except BaseException:
                mail.drop(receipt)
                raise
            self._complete()
        return super().wait()

    def is_completed(self):
        if not self._done and self._pg._mail.has_come(self._receipt):
            self._complete()
        return self._done

    def source_rank(self):
        """The rank in the group that the message came from."""
        self.wait()
        return self._pg._ranks.index(self._receipt.message.source)

    _source_rank = source_rank


def _named(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else "any rank"


def warn_not_in_group(name, rank):
    """The warning of a collective that a process outside the group calls."""
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=4)


for _class in (ProcessGroup, Work, Received):
    _class.__module__ = __package__ + ".distributed_c10d"
for _class in (Backend, BackendConfig, group, GroupMember):
    _class.__module__ = __package__ + ".distributed_c10d"
