# Who is meant in a call: processes outside of the group, the root of a collective, the other end of a message.
from ._group import warn_not_in_group
from ._groups import _get_default_group, _group_or_default_group, _rank_not_in_group, get_rank

__all__ = ["check_one_sided", "destination_in", "group_for", "rank_in", "root_in", "sources_in"]


def group_for(name, group):
    """The group that a function of this name works with; None, with a warning, in a process that is not in it."""
    if _rank_not_in_group(group):
        warn_not_in_group(name, get_rank())
        return None
    return _group_or_default_group(group)


def rank_in(pg, global_rank, group_rank, what):
    """The rank in the group of the process meant by (world rank, rank in the group), one of which is given."""
    if global_rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is None:
        if global_rank not in pg._ranks:
            if pg is _get_default_group():
                raise RuntimeError(f"ProcessGroup::{what}: invalid root rank: {global_rank}")
            raise ValueError(f"Global rank {global_rank} is not part of group {pg}")
        return pg._ranks.index(global_rank)
    if not 0 <= group_rank < pg.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {pg}")
    return group_rank


def root_in(pg, global_rank, group_rank, what):
    """`rank_in`; the process of world rank 0 where neither is given."""
    return rank_in(pg, 0 if global_rank is None and group_rank is None else global_rank, group_rank, what)


def check_one_sided(pg, root, given, name, side):
    """ValueError unless the root, the `side` of a collective, and nobody else has `given` the argument of this name."""
    if pg.rank() == root and not given:
        raise ValueError(f"Argument ``{name}`` must be specified on {side} rank.")
    if pg.rank() != root and given:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{side} ranks.")


def destination_in(pg, global_rank, group_rank):
    """The world rank that a message goes to. ValueError for this process itself."""
    return _other(pg, rank_in(pg, global_rank, group_rank, "send"), "destination")


def sources_in(pg, global_rank, group_rank):
    """The world ranks that a message may come from: all others where none is named. ValueError for this process itself."""
    if global_rank is None and group_rank is None:
        return [rank for i, rank in enumerate(pg._ranks) if i != pg.rank()]
    return [_other(pg, rank_in(pg, global_rank, group_rank, "recv"), "source")]


def _other(pg, rank, side):
    if rank == pg.rank():
        raise ValueError(f"Invalid {side} rank: {side} rank should not be the same as the rank of the current process.")
    return pg._ranks[rank]
