"""RANKRUN_AS_GLOO=1: groups of the backend "gloo" are made by librankrun, for fixed programs."""

import sys

from torch import distributed as dist
from torch.distributed import distributed_c10d

from rankrun.torch import _group

# Functions of distributed_c10d that make a group. Others make Gloo's own, as helpers in C++.
_MAKERS = ("_new_process_group_helper", "_create_gloo_process_group")


class _Options:
    """What torch.distributed tells a backend, from the arguments of ProcessGroupGloo."""

    def __init__(self, store, rank, size, timeout):
        self.store = store
        self.group_rank = rank
        self.group_size = size
        self.timeout = timeout
        self.group_id = _group.of_maker("group_name", "gloo")
        self.global_ranks_in_group = _group.of_maker("global_ranks_in_group", [])


# Its name stays "rankrun", because DistributedDataParallel asks a group that is named "gloo" for
# Gloo's class in C++.
class ProcessGroup(_group.ProcessGroup):
    event_prefix = "gloo"


class _ProcessGroupGloo:
    """Stands for the class ProcessGroupGloo in distributed_c10d."""

    def __init__(self, own):
        self._own = own

    def __call__(self, store, rank, size, timeout=dist.constants.default_pg_timeout, **others):
        is_group = sys._getframe(1).f_code.co_name in _MAKERS
        if not is_group or len(set(_group.device_map().values())) > 1:
            return self._own(store, rank, size, timeout=timeout, **others)
        return ProcessGroup(_Options(store, rank, size, timeout))

    def __instancecheck__(self, group):
        return isinstance(group, (self._own, ProcessGroup))

    def __getattr__(self, name):
        return getattr(self._own, name)


def begin():
    """Replaces Gloo, if this PyTorch has it."""
    own = getattr(distributed_c10d, "ProcessGroupGloo", None)
    if own is not None and not isinstance(own, _ProcessGroupGloo):
        distributed_c10d.ProcessGroupGloo = _ProcessGroupGloo(own)
