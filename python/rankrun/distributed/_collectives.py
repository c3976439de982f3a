"""The collectives. A tensor is an object with a buffer (a numpy array, array.array, bytearray), or
one with __dlpack__ in memory of the CPU; it is dense, and results are written into it. Shapes count
elements. With async_op a call returns a Work, else None. Errors: see DistError and its classes."""

import enum

from rankrun import _native
from rankrun._time import milliseconds
from rankrun.distributed._groups import global_rank, is_outside, of
from rankrun.distributed._work import Work

_USUAL = -1  # the time-out of the group


class ReduceOp(enum.IntEnum):
    """Operations of reductions. bfloat16 and float16 are reduced in float32."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    @staticmethod
    def premul_sum(factor):
        """The sum of the tensors times a factor, which each rank may choose."""
        return _PremulSum(factor)


class _PremulSum:
    def __init__(self, factor):
        self.factor = float(factor)


def _kind(op):
    return (8, op.factor) if isinstance(op, _PremulSum) else (int(op), 0.0)


def read(tensor):
    return _native.view(tensor, False)


def written(tensor):
    return _native.view(tensor, True)


def _run(function, group, *arguments, async_op):
    handle = function(of(group)._handle, *arguments, _USUAL, async_op)
    return Work(handle) if async_op else None


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduces the tensors of all ranks, which are of one shape, into each of them."""
    if is_outside(group, "all_reduce"):
        return None
    return _run(_native.all_reduce, group, written(tensor), *_kind(op), async_op=async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """As all_reduce, into the tensor of `dst` only."""
    if is_outside(group, "reduce"):
        return None
    root = global_rank(group, dst, group_dst, "dst")
    return _run(_native.reduce, group, written(tensor), root, *_kind(op), async_op=async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Copies the tensor of `src` to all ranks."""
    if is_outside(group, "broadcast"):
        return None
    root = global_rank(group, src, group_src, "src", 0 if group is None else None)
    is_root = root == get_own(group)
    view = read(tensor) if is_root else written(tensor)
    return _run(_native.broadcast, group, view, root, async_op=async_op)


def get_own(group):
    """Returns the global rank of this process, which is a member."""
    return of(group)._ranks[of(group).rank()]


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copies the tensor of rank i to tensor_list[i] of all ranks. Shapes may differ by rank."""
    if is_outside(group, "all_gather"):
        return None
    outputs = [written(each) for each in tensor_list]
    return _run(_native.all_gather, group, outputs, read(tensor), async_op=async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """As all_gather, into one tensor of world_size times as many elements."""
    if is_outside(group, "all_gather_into_tensor"):
        return None
    views = written(output_tensor), read(input_tensor)
    return _run(_native.all_gather_into, group, *views, async_op=async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copies the tensor of rank i to gather_list[i] of `dst`; others give no list."""
    if is_outside(group, "gather"):
        return None
    root = global_rank(group, dst, group_dst, "dst", 0 if group is None else None)
    outputs = [written(each) for each in gather_list or ()]
    return _run(_native.gather, group, outputs, read(tensor), root, async_op=async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copies scatter_list[i] of `src` to the tensor of rank i; others give no list."""
    if is_outside(group, "scatter"):
        return None
    root = global_rank(group, src, group_src, "src", 0 if group is None else None)
    inputs = [read(each) for each in scatter_list or ()]
    return _run(_native.scatter, group, written(tensor), inputs, root, async_op=async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduces input_list[i] of all ranks into the output of rank i."""
    if is_outside(group, "reduce_scatter"):
        return None
    inputs = [read(each) for each in input_list]
    return _run(
        _native.reduce_scatter, group, written(output), inputs, *_kind(op), async_op=async_op
    )


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """As reduce_scatter, from one tensor of world_size times as many elements."""
    if is_outside(group, "reduce_scatter_tensor"):
        return None
    views = written(output), read(input)
    return _run(_native.reduce_scatter_from, group, *views, *_kind(op), async_op=async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copies input_tensor_list[j] of rank i to output_tensor_list[i] of rank j."""
    if is_outside(group, "all_to_all"):
        return None
    outputs = [written(each) for each in output_tensor_list]
    inputs = [read(each) for each in input_tensor_list]
    return _run(_native.all_to_all, group, outputs, inputs, async_op=async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None,
                      async_op=False):
    """As all_to_all, of the parts of one tensor each: rows by rank, equally many for None."""
    if is_outside(group, "all_to_all_single"):
        return None
    views = written(output), read(input)
    splits = output_split_sizes, input_split_sizes
    return _run(_native.all_to_all_single, group, *views, *splits, async_op=async_op)


def barrier(group=None, async_op=False, device_ids=None):
    """Waits until all ranks have called it."""
    if device_ids:
        raise ValueError("device_ids is given: the backends of rankrun.distributed have none")
    if is_outside(group, "barrier"):
        return None
    return _run(_native.barrier, group, async_op=async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """As barrier. After the time-out (a timedelta) the error names the first rank that is missing,
    or all of them with wait_all_ranks."""
    if is_outside(group, "monitored_barrier"):
        return
    _native.monitored_barrier(of(group)._handle, milliseconds(timeout), wait_all_ranks)
