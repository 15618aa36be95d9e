# torch.distributed.distributed_c10d: the public functions under the module name that PyTorch's own have.
import contextlib
import enum
from datetime import timedelta

from msadapter_hook import settings

from . import _job, _objects
from ._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._group import Backend, BackendConfig, GroupMember, ProcessGroup, Work, group
from ._groups import (
    _get_default_group,
    _group_or_default_group,
    _rank_not_in_group,  # noqa: F401 (programs and libraries take it from here)
    _world,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from ._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._reduce import ReduceOp
from ._store import FileStore, HashStore, PrefixStore, Store
from ._tcp_store import TCPStore
from .rendezvous import default_pg_timeout, register_rendezvous_handler, rendezvous

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend", "BackendConfig", "BarrierOptions",
    "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "record_comm", "DebugLevel",
    "DistBackendError", "DistError",
    "DistNetworkError", "DistStoreError", "FileStore", "GroupMember", "GroupName", "HashStore", "P2POp", "PrefixStore",
    "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced",
    "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "default_pg_timeout",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config", "get_debug_level",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_op", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "shrink_group", "split_group", "supports_complex",
]

reduce_op = ReduceOp
default_pg_nccl_timeout = timedelta(minutes=10)
_default_pg_init_method = "env://"
GroupName = str


class DebugLevel(enum.Enum):
    """TORCH_DISTRIBUTED_DEBUG (PyTorch, torch.distributed.DebugLevel)."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level():
    """What TORCH_DISTRIBUTED_DEBUG says. Collectives that do not match are found at any level here. Source: PyTorch,
    torch.distributed.get_debug_level."""
    return DebugLevel[settings.variable("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()]


class _Options:
    """Options of a collective, for the methods of ProcessGroup."""

    def __init__(self):
        self.reduceOp, self.rootRank, self.rootTensor = ReduceOp.SUM, 0, 0
        self.timeout, self.asyncOp, self.device_ids = default_pg_timeout, True, []


def _options(*names):
    # PyTorch's names; here all of them are one kind of record
    return [type(name, (_Options,), {"__module__": __name__, "__doc__": f"{_Options.__doc__} PyTorch, torch.distributed.{name}."})
            for name in names]


(AllToAllOptions, AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions, BroadcastOptions, GatherOptions,
 ReduceOptions, ReduceScatterOptions, ScatterOptions) = _options(
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
    "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions")


class _CoalescingManager:
    """The handles of collectives that were called together."""

    def __init__(self):
        self.works = []

    def append(self, work):
        if work is not None:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Collectives inside run one after the other, as outside: nothing is gained by joining them on CPU."""
    yield _CoalescingManager()


@contextlib.contextmanager
def record_comm(name):
    """A named part of a profile (PyTorch, torch.distributed.record_comm)."""
    from ..profiler import record_function

    with record_function(name):
        yield


def _broadcast_coalesced(process_group, tensors, buffer_size, src=0, authoritative_rank=None):
    """All processes get the tensors of the process `src` of the group."""
    for tensor in tensors:
        broadcast(tensor, group=process_group, group_src=src if authoritative_rank is None else authoritative_rank)


def _object_to_tensor(obj, device=None, group=None):
    from .. import from_numpy, tensor

    data = _objects._dump(obj)
    return from_numpy(data), tensor([data.size])


def _tensor_to_object(tensor, tensor_size, group=None):
    return _objects._load(tensor.cpu().numpy()[: int(tensor_size)])


_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
_get_global_rank, _get_group_size = get_global_rank, get_world_size


def is_gloo_available():
    """True: MindSpore's communication on CPU answers for it. Source: PyTorch, torch.distributed.is_gloo_available."""
    return True


def is_nccl_available():
    """True where there are GPUs. Source: PyTorch, torch.distributed.is_nccl_available."""
    from .. import cuda

    return cuda.is_available()


def is_mpi_available():
    """True under mpirun. Source: PyTorch, torch.distributed.is_mpi_available."""
    return _job.launched_by() == "mpi"


def is_ucc_available():
    return False


def is_xccl_available():
    return False


def is_backend_available(backend):
    """True for a backend that `is_…_available` says True for. Source: PyTorch, torch.distributed.is_backend_available."""
    available = {"gloo": is_gloo_available, "nccl": is_nccl_available, "mpi": is_mpi_available}
    return available.get(backend.lower(), lambda: backend.lower() in (Backend.HCCL, Backend.MCCL))()


def is_torchelastic_launched():
    """True under torchrun. Source: PyTorch, torch.distributed.is_torchelastic_launched."""
    return settings.is_set("TORCHELASTIC_RUN_ID")


def get_default_backend_for_device(device):
    """The backend for a device's tensors. Source: PyTorch, torch.distributed.get_default_backend_for_device."""
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """Split a group into groups of the given ranks of the parent; gives the own one, or None. Source: PyTorch,
    torch.distributed.split_group."""
    parent = _group_or_default_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    own = None
    for ranks in split_ranks:
        made = new_group([get_global_rank(parent, rank) for rank in ranks], timeout, backend, pg_options, True, group_desc)
        if made is not GroupMember.NON_GROUP_MEMBER:
            own = made
    return own


def shrink_group(ranks_to_exclude, group=None, shrink_flags=0, pg_options=None):
    """Refused: NotImplementedError."""
    from msadapter_hook.errors import unsupported

    raise unsupported("torch.distributed.shrink_group", "make the smaller group with torch.distributed.new_group")


def _get_default_store():
    return _get_default_group()._store


def _get_default_timeout(backend):
    return default_pg_timeout


def _get_process_group_name(pg):
    return pg.group_name


def _resolve_process_group(group_name):
    return _world.groups[group_name]


for _name in __all__:
    _one = globals()[_name]
    if getattr(_one, "__module__", "").startswith(__package__ + "._"):
        _one.__module__ = __name__
