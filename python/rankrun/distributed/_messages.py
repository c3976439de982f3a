"""Messages between two ranks. Tensors are those of the collectives."""

from rankrun import _native
from rankrun.distributed._collectives import read, written
from rankrun.distributed._groups import global_rank, is_outside, of
from rankrun.distributed._work import Work

_ANY = -1


def _source(group, src, group_src):
    is_any = src is None and group_src is None
    return _ANY if is_any else global_rank(group, src, group_src, "src")


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends a tensor to the global rank `dst`, or to a rank of the group."""
    if is_outside(group, "send"):
        return
    peer = global_rank(group, dst, group_dst, "dst")
    _native.send(of(group)._handle, read(tensor), peer, tag, -1)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """As send. Returns a Work; the tensor must not change until it has ended."""
    if is_outside(group, "isend"):
        return None
    peer = global_rank(group, dst, group_dst, "dst")
    return Work(_native.isend(of(group)._handle, read(tensor), peer, tag))


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receives a tensor of the same shape, from any rank without `src`. Returns the global rank of
    the sender, -1 on a rank that is not in the group."""
    if is_outside(group, "recv"):
        return -1
    source = _source(group, src, group_src)
    return _native.recv(of(group)._handle, written(tensor), source, tag, -1)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """As recv. Returns a Work."""
    if is_outside(group, "irecv"):
        return None
    source = _source(group, src, group_src)
    return Work(_native.irecv(of(group)._handle, written(tensor), source, tag))


class P2POp:
    """A message for batch_isend_irecv. op: isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(f"op: want isend or irecv, not {op!r}")
        self.op = op
        self.tensor = tensor
        self.peer = global_rank(group, peer, group_peer, "peer")
        self.group = group
        self.tag = tag


def batch_isend_irecv(p2p_op_list):
    """Starts messages of one group together. Returns their Work, in this order."""
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: want at least one P2POp")
    group = of(p2p_op_list[0].group)
    if any(of(each.group) is not group for each in p2p_op_list):
        raise ValueError("batch_isend_irecv: want messages of one group")
    if is_outside(group, "batch_isend_irecv"):
        return []
    are_sends = [int(each.op is isend) for each in p2p_op_list]
    views = [
        read(each.tensor) if is_send else written(each.tensor)
        for each, is_send in zip(p2p_op_list, are_sends)
    ]
    handles = _native.batch(
        group._handle, views, are_sends, [each.peer for each in p2p_op_list],
        [each.tag for each in p2p_op_list],
    )
    return [Work(handle) for handle in handles]
