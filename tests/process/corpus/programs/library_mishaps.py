#!/usr/bin/env python3
"""library_mishaps.py LIBRARY RANK WAY: jobs with librankrun, called from Python by ctypes. Rank RANK fails or
hangs at step 3 by WAY."""
import array
import ctypes
import signal
import sys
import time

from common import RANK, SIZE, ready, wait_for_all

library, culprit, way = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
is_culprit = RANK == culprit


class Tensor(ctypes.Structure):
    """rankrun_tensor."""
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_size_t), ("row", ctypes.c_size_t),
                ("device_index", ctypes.c_int32), ("dtype", ctypes.c_uint8),
                ("device_type", ctypes.c_uint8), ("reserved", ctypes.c_uint16)]


class GroupOptions(ctypes.Structure):
    """rankrun_group_options."""
    _fields_ = [("size", ctypes.c_uint32), ("sort_ranks", ctypes.c_int32),
                ("use_local_synchronization", ctypes.c_int32), ("reserved", ctypes.c_uint32),
                ("ranks", ctypes.POINTER(ctypes.c_int32)), ("ranks_count", ctypes.c_size_t),
                ("timeout_ms", ctypes.c_int64), ("backend", ctypes.c_char_p),
                ("description", ctypes.c_char_p), ("nccl", ctypes.c_void_p)]


Splits = ctypes.c_size_t * SIZE
library.rankrun_last_error.restype = ctypes.c_char_p
library.rankrun_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
library.rankrun_all_to_all_single.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.POINTER(Tensor),
    ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p]
library.rankrun_new_group.argtypes = [ctypes.POINTER(GroupOptions), ctypes.c_void_p]
library.rankrun_init.argtypes = [ctypes.c_void_p]
library.rankrun_destroy.argtypes = [ctypes.c_void_p]


def check(status):
    if status != 0:
        raise RuntimeError(library.rankrun_last_error().decode())


def tensor_of(values):
    address, count = values.buffer_info()
    return ctypes.byref(Tensor(data=address, count=count, dtype=1))


def sum_up(count=16):
    values = array.array("d", [1.0] * count)
    check(library.rankrun_all_reduce(None, tensor_of(values), None, -1, None))


def make_group():
    """All make a group of the first ranks; the culprit takes the last ones."""
    half = SIZE // 2
    ranks = range(half, SIZE) if is_culprit else range(half)
    options = GroupOptions()
    options.size = ctypes.sizeof(options)
    check(library.rankrun_group_options_default(ctypes.byref(options)))
    options.ranks, options.ranks_count = (ctypes.c_int32 * half)(*ranks), half
    group = ctypes.c_void_p()
    check(library.rankrun_new_group(ctypes.byref(options), ctypes.byref(group)))


def exchange_tokens():
    """The culprit sends the rank after it a token more than that one expects, and itself one less."""
    sent = [4] * SIZE
    if is_culprit:
        sent[culprit] -= 1
        sent[culprit + 1] += 1
    received = [4] * SIZE
    received[RANK] = sent[RANK]
    source, target = array.array("d", [1.0] * sum(sent)), array.array("d", [0.0] * sum(received))
    check(library.rankrun_all_to_all_single(
        None, tensor_of(target), tensor_of(source), Splits(*received), SIZE, Splits(*sent), SIZE, -1,
        None))


def wait_for_signal():
    """A scheduler was to send a signal when the data are there."""
    if is_culprit:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        signal.sigwait({signal.SIGUSR1})


WAYS = {"group": make_group, "signal": wait_for_signal, "tokens": exchange_tokens}

check(library.rankrun_init(None))
ready()
wait_for_all()
for step in range(2000):
    if step == 3:
        WAYS[way]()
    sum_up()
    if step > 5:
        time.sleep(0.005)
check(library.rankrun_destroy(None))
