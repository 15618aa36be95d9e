# The process groups of this process: the default group, those made from it, and questions about ranks.
import hashlib
from datetime import timedelta

from msadapter_hook import settings
from msadapter_hook.errors import unsupported

from . import _job
from ._circle import Circle
from ._errors import DistBackendError
from ._group import Backend, BackendConfig, GroupMember, ProcessGroup
from ._store import PrefixStore
from .rendezvous import check_rank, default_pg_timeout, rendezvous

__all__ = ["_get_default_group", "_group_or_default_group", "_rank_not_in_group", "_world", "destroy_process_group", "get_backend",
           "get_backend_config", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
           "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "is_initialized", "new_group",
           "new_subgroups", "new_subgroups_by_enumeration"]


class _World:
    """What init_process_group and new_group have made."""

    def __init__(self):
        self.default_pg = None
        self.groups = {}  # group name -> ProcessGroup, those that this process is in
        self.count = 0  # names given to groups, the same on all processes
        self.local = {}  # ranks -> groups made by their members alone
        self.backend = None

    @property
    def pg_map(self):
        return {pg: (pg._backend, pg._store) for pg in self.groups.values()}

    @property
    def pg_names(self):
        return {pg: name for name, pg in self.groups.items()}

    @property
    def pg_group_ranks(self):
        return {pg: {rank: i for i, rank in enumerate(pg._ranks)} for pg in self.groups.values()}


_world = _World()


def is_initialized():
    """True between init_process_group and destroy_process_group. Source: PyTorch, torch.distributed.is_initialized."""
    return _world.default_pg is not None


def _get_default_group():
    if _world.default_pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _world.default_pg


def _group_or_default_group(group=None):
    return _get_default_group() if group is None or group is GroupMember.WORLD else group


def _rank_not_in_group(group):
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def registered(group):
    """The group, or the default one for None. ValueError for what is no group of this process."""
    group = _group_or_default_group(group)
    if not isinstance(group, ProcessGroup) or _world.groups.get(group.group_name) is not group:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def get_rank(group=None):
    """The rank of this process in the group, -1 where it is not in it. Source: PyTorch, torch.distributed.get_rank."""
    if _rank_not_in_group(group):
        return -1
    return registered(group).rank() if group is not None else _get_default_group().rank()


def get_world_size(group=None):
    """How many processes are in the group, -1 for a process outside. Source: PyTorch, torch.distributed.get_world_size."""
    if _rank_not_in_group(group):
        return -1
    return registered(group).size() if group is not None else _get_default_group().size()


def get_backend(group=None):
    """The name of the group's backend. Source: PyTorch, torch.distributed.get_backend."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return str(registered(pg)._backend)


def get_backend_config(group=None):
    """Which backend serves which device, as text. Source: PyTorch, torch.distributed.get_backend_config."""
    return repr(BackendConfig(registered(group)._backend))


def get_process_group_ranks(group=None):
    """The world ranks of the group. Source: PyTorch, torch.distributed.get_process_group_ranks."""
    return list(_group_or_default_group(group)._ranks)


def get_global_rank(group, group_rank):
    """The world rank of a rank of the group. Source: PyTorch, torch.distributed.get_global_rank."""
    if group is GroupMember.WORLD:
        return group_rank
    ranks = registered(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    """The rank in the group of a world rank. Source: PyTorch, torch.distributed.get_group_rank."""
    if group is GroupMember.WORLD:
        return global_rank
    ranks = registered(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK of the launcher. Source: PyTorch, torch.distributed.get_node_local_rank."""
    if settings.is_set("LOCAL_RANK"):
        return int(settings.variable("LOCAL_RANK"))
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
                       "assuming you are not running in a multi-device context and want the code to run locally instead.")


def get_pg_count():
    """How many groups have been made since init_process_group, that one and ended ones included. Source: PyTorch,
    torch.distributed.get_pg_count."""
    return _world.count


def _check_timeout(timeout):
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="",
                       pg_options=None, device_id=None, _ranks=None):
    """Start the default process group (PyTorch, torch.distributed.init_process_group).

    backend: any of PyTorch's names or "hccl"; all of them are MindSpore's communication. init_method: "env://" (the default),
    "tcp://host:port", "file:///path"; or a `store` with rank and world_size. timeout: how long to wait for the other processes,
    now and in collectives (30 minutes). Under `msrun` and `mpirun` the launcher's variables stand for PyTorch's where those are
    missing. ValueError for missing ranks or a second call, DistStoreError where processes do not come. A world of one process
    needs no other program and no server.
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    timeout = _check_timeout(timeout)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    config = BackendConfig(Backend(backend) if backend is not None else Backend.UNDEFINED)
    if settings.variable("MS_ROLE") == "MS_SCHED":  # msrun runs the program in a process of its own too: not needed here
        raise SystemExit(0)
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    check_rank(rank, world_size)
    seconds = timeout.total_seconds()
    job = None
    if world_size > 1:
        job = _job.begin(PrefixStore("default_pg", store), rank, world_size, seconds)
    name = _next_name()
    circle = Circle(job, list(range(world_size)), _circle_name(job, name), seconds)
    pg = ProcessGroup(circle, range(world_size), _backend_name(backend), name, "default_pg", PrefixStore(name, store))
    pg.bound_device_id = device_id
    _world.groups[name] = pg
    _world.default_pg = pg
    _world.backend = repr(config)
    try:
        circle.meet("init_process_group")
    except DistBackendError:
        destroy_process_group()
        raise


def _circle_name(job, name):
    """What a job's counters know a group by: names come again after destroy_process_group."""
    return name if job is None else f"{job.rounds}.{name}"


def _backend_name(backend):
    return Backend(backend) if backend is not None else Backend.UNDEFINED


def _next_name():
    name = str(_world.count)
    _world.count += 1
    return name


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
              device_id=None, sort_ranks=True):
    """A group of some of the processes (PyTorch, torch.distributed.new_group).

    ranks: world ranks, all by default. All processes of the default group must call it, in the same order, whether they are in
    the new group or not, unless `use_local_synchronization=True`: then its members alone. Processes outside get
    GroupMember.NON_GROUP_MEMBER. ValueError for ranks that are twice there or out of range.
    """
    world = _get_default_group()
    if timeout is not None:
        _check_timeout(timeout)
    backend = world._backend if backend is None else Backend(backend)
    BackendConfig(backend)
    size = world.size()
    if ranks is None:
        ranks = list(range(size))
    else:
        ranks = sorted(ranks) if sort_ranks else list(ranks)
        if not ranks:
            raise ValueError("a process group needs at least one rank")
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
        for rank in ranks:
            if not 0 <= rank < size:
                raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    inside = world.rank() in ranks
    if use_local_synchronization:
        if not inside:
            return GroupMember.NON_GROUP_MEMBER
        key = tuple(ranks)
        _world.local[key] = _world.local.get(key, 0) + 1
        digest = hashlib.sha1("_".join(map(str, ranks)).encode(), usedforsecurity=False).hexdigest()
        name = f"{digest}_{_world.local[key]}"
    else:
        name = _next_name()
    pg = GroupMember.NON_GROUP_MEMBER
    if inside:
        seconds = world._circle.timeout if timeout is None else timeout.total_seconds()
        circle = Circle(world._circle.job, ranks, _circle_name(world._circle.job, name), seconds)
        pg = ProcessGroup(circle, ranks, backend, name, group_desc or "undefined", PrefixStore(name, world._store))
        pg.bound_device_id = device_id
        _world.groups[name] = pg
    (pg if use_local_synchronization else world)._circle.meet(f"new_group({ranks})")
    return pg


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """The processes in groups of `group_size` neighbours; gives (own group, all groups). Source: PyTorch,
    torch.distributed.new_subgroups."""
    if group is not None and group is not _world.default_pg:
        raise unsupported("torch.distributed.new_subgroups(group=…)", "groups are made of all processes; use new_group(ranks)")
    size = get_world_size()
    if group_size is None:
        group_size = int(settings.variable("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    lists = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of the given ranks, which must not overlap; gives (own group, all groups). Source: PyTorch,
    torch.distributed.new_subgroups_by_enumeration."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    for rank in seen:
        if seen.count(rank) > 1:
            raise ValueError(f"Rank {rank} has appeared in more than one subgroup")
    own, groups = None, []
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        if get_rank() in ranks:
            own = made
    return own, groups


def destroy_process_group(group=None):
    """End a group; by default all of them. Other processes are not waited for. Source: PyTorch,
    torch.distributed.destroy_process_group."""
    if _rank_not_in_group(group):
        return
    pg = _world.default_pg if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg.group_name not in _world.groups:
        raise ValueError("Invalid process group specified")
    if pg is _world.default_pg:
        _world.groups.clear()
        _world.local.clear()
        _world.default_pg = None
        _world.count = 0
    else:
        del _world.groups[pg.group_name]
