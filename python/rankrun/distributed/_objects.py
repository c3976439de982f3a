"""Collectives and messages of objects: None, bool, int, float, str, bytes, list, tuple and dict, as
CBOR; with use_pickle=True any object. Unpickling runs what the sender wishes, so use it among ranks
that trust each other. All ranks of a call give the same use_pickle."""

import pickle

from rankrun import _native
from rankrun.distributed import _cbor
from rankrun.distributed._collectives import get_own
from rankrun.distributed._groups import global_rank, is_outside, of
from rankrun.distributed._messages import _source

_USUAL = -1  # the time-out of the group


def _bytes(value, use_pickle):
    return pickle.dumps(value) if use_pickle else _cbor.encode(value)


def _object(data, use_pickle):
    return pickle.loads(data) if use_pickle else _cbor.decode(data)


def _refuse_device(device):
    if device is not None:
        raise ValueError("device is given: objects go through memory of the CPU")


def all_gather_object(object_list, obj, group=None, *, use_pickle=False):
    """Sets object_list[i] to the object of rank i, on all ranks."""
    if is_outside(group, "all_gather_object"):
        return
    data = _native.all_gather_object(of(group)._handle, _bytes(obj, use_pickle), _USUAL)
    if len(object_list) != len(data):
        raise ValueError(f"object_list has {len(object_list)} items: want {len(data)}")
    object_list[:] = [_object(each, use_pickle) for each in data]


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None, *,
                  use_pickle=False):
    """Sets object_gather_list[i] of `dst` to the object of rank i."""
    if is_outside(group, "gather_object"):
        return
    root = global_rank(group, dst, group_dst, "dst", 0 if group is None else None)
    is_root = root == get_own(group)
    size = of(group).size()
    if is_root and len(object_gather_list or ()) != size:
        raise ValueError(f"object_gather_list: want a list of {size} items on rank {root}")
    data = _native.gather_object(of(group)._handle, _bytes(obj, use_pickle), root, _USUAL)
    if is_root:
        object_gather_list[:] = [_object(each, use_pickle) for each in data]


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, *,
                          use_pickle=False):
    """Sets the items of the list to those of `src`. The lists are of one length."""
    _refuse_device(device)
    if is_outside(group, "broadcast_object_list"):
        return
    root = global_rank(group, src, group_src, "src", 0 if group is None else None)
    is_root = root == get_own(group)
    own = [_bytes(each, use_pickle) if is_root else b"" for each in object_list]
    data = _native.broadcast_objects(of(group)._handle, own, root, _USUAL)
    if not is_root:
        object_list[:] = [_object(each, use_pickle) for each in data]


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None,
                        group=None, group_src=None, *, use_pickle=False):
    """Sets the first item of the output list of rank i to item i of the input list of `src`."""
    if is_outside(group, "scatter_object_list"):
        return
    if not scatter_object_output_list:
        raise ValueError("scatter_object_output_list: want a list of at least one item")
    root = global_rank(group, src, group_src, "src", 0 if group is None else None)
    inputs = scatter_object_input_list if root == get_own(group) else None
    own = [_bytes(each, use_pickle) for each in inputs or ()]
    data = _native.scatter_objects(of(group)._handle, own, root, _USUAL)
    scatter_object_output_list[0] = _object(data[0], use_pickle)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, *,
                     use_pickle=False):
    """Sends the items of a list."""
    _refuse_device(device)
    if is_outside(group, "send_object_list"):
        return
    peer = global_rank(group, dst, group_dst, "dst")
    data = [_bytes(each, use_pickle) for each in object_list]
    _native.send_objects(of(group)._handle, data, peer, 0, _USUAL)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, *,
                     use_pickle=False):
    """Sets the items of the list to those that are sent; the lists are of one length. Returns the
    global rank of the sender, -1 on a rank that is not in the group."""
    _refuse_device(device)
    if is_outside(group, "recv_object_list"):
        return -1
    source = _source(group, src, group_src)
    sender, data = _native.recv_objects(of(group)._handle, len(object_list), source, 0, _USUAL)
    object_list[:] = [_object(each, use_pickle) for each in data]
    return sender
