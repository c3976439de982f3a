"""Collectives, messages and stores of librankrun, with the names, arguments and defaults of
torch.distributed, over numpy arrays, buffers and DLPack objects in memory of the CPU.

    from rankrun import distributed as dist

    dist.init_process_group()
    numbers = array.array("d", [1, 2, 3])
    dist.all_reduce(numbers)
    dist.destroy_process_group()

Needs nothing but the standard library. Ctrl-C ends each wait. docs/python.md has the differences.
"""

from rankrun._breakpoint import breakpoint
from rankrun._native import (
    DistBackendError,
    DistError,
    DistMismatchError,
    DistNetworkError,
    DistStoreError,
    DistTimeoutError,
)
from rankrun.distributed._collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from rankrun.distributed._groups import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_initialized,
    is_torchelastic_launched,
    new_group,
    shrink_group,
    split_group,
)
from rankrun.distributed._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from rankrun.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from rankrun.distributed._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from rankrun.distributed._work import Work

__all__ = [name for name in dir() if not name.startswith("_")]
