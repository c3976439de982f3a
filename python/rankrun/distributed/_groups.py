"""Process groups."""

import warnings

from rankrun import _native
from rankrun._time import milliseconds
from rankrun.distributed._stores import handle_of


class ProcessGroup:
    """A group of ranks, as new_group and group.WORLD give it."""

    def __init__(self, handle):
        self._handle = handle
        self._ranks = _native.group_ranks(handle)

    def __repr__(self):
        return f"<ProcessGroup {self.group_name} of ranks {self._ranks}>"

    def rank(self):
        return _native.group_rank(self._handle)

    def size(self):
        return len(self._ranks)

    def name(self):
        """Returns the name of the backend, as of torch.distributed's groups."""
        return _native.group_backend(self._handle)

    @property
    def group_name(self):
        return _native.group_name(self._handle)

    @property
    def group_desc(self):
        return _native.group_description(self._handle)

    def abort(self, reason=None):
        """Ends the calls under way on all ranks, with this reason. The group is of no use then."""
        _native.abort(self._handle, reason)

    def check(self):
        """Raises the error of a group that has failed."""
        _native.group_state(self._handle)


class _Outside:
    def __repr__(self):
        return "NON_GROUP_MEMBER"


class GroupMember:
    """NON_GROUP_MEMBER is what new_group returns on ranks that are not in the group."""

    NON_GROUP_MEMBER = _Outside()


_world = None  # the ProcessGroup of init_process_group


class _Group(type):
    @property
    def WORLD(cls):
        return _world


class group(metaclass=_Group):
    """WORLD is the default group, None before init_process_group."""


def of(group):
    """Returns a group, the world for None."""
    if group is None:
        if _world is None:
            raise ValueError("the default group is not there: want init_process_group first")
        return _world
    return group


def is_outside(group, name):
    """Returns whether this rank is not in a group, and so does nothing in a call; warns of it."""
    if of(group) is not GroupMember.NON_GROUP_MEMBER:
        return False
    warnings.warn(f"{name} does nothing on a rank that is not in the group", stacklevel=3)
    return True


def global_rank(group, rank, group_rank, name, default=None):
    """Returns the global rank of the argument `name` or of that with a rank of the group."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{name} and group_{name} are both given: want one")
    if group_rank is not None:
        return get_global_rank(group, group_rank)
    if rank is None and default is None:
        raise ValueError(f"{name} is missing: want a global rank, or group_{name}")
    rank = default if rank is None else rank
    if rank not in of(group)._ranks:
        raise ValueError(f"{name} is {rank}: want a rank of {of(group)._ranks}")
    return rank


def _refuse(**unsupported):
    for name, value in unsupported.items():
        if value:
            raise ValueError(f"{name} is given: rankrun.distributed has no use for it")


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1,
                       store=None, group_name="", pg_options=None, device_id=None):
    """Joins the other ranks, and makes the default group.

    backend: "shm", "tcp", "hierarchical", or a plug-in such as "gloo"; None: what suits the hosts.
    init_method: "env://" (None; RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), "tcp://HOST:PORT" or
    "file:///PATH". timeout: of each call, a timedelta; None: 30 minutes.
    store: of this module, instead of init_method, with rank and world_size.
    """
    global _world
    _refuse(group_name=group_name, pg_options=pg_options, device_id=device_id)
    _native.init(backend, init_method, rank, world_size, milliseconds(timeout), handle_of(store))
    _world = ProcessGroup(_native.world())


def destroy_process_group(group=None):
    """Destroys a group; the world, for None, with all its groups."""
    global _world
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    is_world = of(group) is _world
    _native.destroy(None if is_world else group._handle)
    if is_world:
        _world = None


def is_available():
    return True


def is_initialized():
    return _world is not None


def is_backend_available(backend):
    """Returns whether this installation has a backend."""
    return _native.backend_available(backend)


def is_torchelastic_launched():
    """Returns whether rankrun has started this process."""
    return _native.launched_by_agent()


def get_rank(group=None):
    return -1 if of(group) is GroupMember.NON_GROUP_MEMBER else of(group).rank()


def get_world_size(group=None):
    return -1 if of(group) is GroupMember.NON_GROUP_MEMBER else of(group).size()


def get_backend(group=None):
    return of(group).name()


def get_process_group_ranks(group=None):
    """Returns the global ranks of a group, by their rank in it."""
    return list(of(group)._ranks)


def get_global_rank(group, group_rank):
    ranks = of(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"rank {group_rank} of a group of {len(ranks)}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    ranks = of(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"rank {global_rank} is not in the group of {ranks}")
    return ranks.index(global_rank)


def new_group(ranks=None, timeout=None, backend=None, pg_options=None,
              use_local_synchronization=False, group_desc=None, device_id=None):
    """Makes a group of some global ranks (None: all). All ranks of the world call it, or only the
    members, with use_local_synchronization. Returns NON_GROUP_MEMBER on ranks that are not in it."""
    _refuse(pg_options=pg_options, device_id=device_id)
    of(None)
    handle = _native.new_group(
        None, list(ranks or ()), True, use_local_synchronization, milliseconds(timeout), backend,
        group_desc,
    )
    return ProcessGroup(handle) if _native.is_member(handle) else GroupMember.NON_GROUP_MEMBER


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None):
    """Splits a group into several, each a list of ranks of the parent. Returns this rank's group,
    or None if it is in none."""
    _refuse(pg_options=pg_options)
    ranks = [rank for part in split_ranks or () for rank in part]
    sizes = [len(part) for part in split_ranks or ()]
    handle = _native.split_group(
        of(parent_pg)._handle, ranks, sizes, milliseconds(timeout), None, group_desc
    )
    return ProcessGroup(handle) if _native.is_member(handle) else None


def shrink_group(ranks_to_exclude, pg=None):
    """Makes a group of those that are left of a group, also after ranks of it have ended. Only
    these call it."""
    return ProcessGroup(
        _native.shrink_group(of(pg)._handle, list(ranks_to_exclude), -1, None, None)
    )
