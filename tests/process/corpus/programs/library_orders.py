#!/usr/bin/env python3
"""library_orders.py LIBRARY RANK WAY: jobs with librankrun, called from Python by ctypes: orders, keys and
messages that do not fit. Rank RANK fails or hangs at step 3 by WAY."""
import array
import ctypes
import os
import re
import sys
import time

from common import RANK, SIZE, ready, wait_for_all

library, culprit, way = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
is_culprit = RANK == culprit
ANY_SOURCE = -1


class Tensor(ctypes.Structure):
    """rankrun_tensor."""
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_size_t), ("row", ctypes.c_size_t),
                ("device_index", ctypes.c_int32), ("dtype", ctypes.c_uint8),
                ("device_type", ctypes.c_uint8), ("reserved", ctypes.c_uint16)]


class TcpStoreOptions(ctypes.Structure):
    """rankrun_tcp_store_options."""
    _fields_ = [("size", ctypes.c_uint32), ("port", ctypes.c_uint16), ("is_server", ctypes.c_uint16),
                ("world_size", ctypes.c_int32), ("wait_for_workers", ctypes.c_int32),
                ("timeout_ms", ctypes.c_int64), ("host", ctypes.c_char_p),
                ("listen_fd", ctypes.c_int32), ("multi_tenant", ctypes.c_int32)]


library.rankrun_last_error.restype = ctypes.c_char_p
library.rankrun_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
library.rankrun_send.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_int, ctypes.c_int, ctypes.c_int64]
library.rankrun_recv.argtypes = library.rankrun_send.argtypes + [ctypes.c_void_p]
library.rankrun_init.argtypes = [ctypes.c_void_p]
library.rankrun_destroy.argtypes = [ctypes.c_void_p]
library.rankrun_store_get.argtypes = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
library.rankrun_store_set.argtypes = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]


def check(status):
    if status != 0:
        raise RuntimeError(library.rankrun_last_error().decode())


def tensor_of(values):
    address, count = values.buffer_info()
    return ctypes.byref(Tensor(data=address, count=count, dtype=1))


def sum_up(count=16):
    values = array.array("d", [1.0] * count)
    check(library.rankrun_all_reduce(None, tensor_of(values), None, -1, None))


def sum_layers():
    """The layers are in a set, which has another order on the culprit."""
    for count in (24, 16) if is_culprit else (16, 24):
        sum_up(count)


def exchange_keys():
    """The culprit and the rank after it each wait for the key of the other before they set their own."""
    if RANK not in (culprit, culprit + 1):
        return
    options = TcpStoreOptions()
    options.size = ctypes.sizeof(options)
    check(library.rankrun_tcp_store_options_default(ctypes.byref(options)))
    options.host, options.port = os.environ["MASTER_ADDR"].encode(), int(os.environ["MASTER_PORT"])
    store, value = ctypes.c_void_p(), ctypes.c_void_p()
    check(library.rankrun_tcp_store(ctypes.byref(options), ctypes.byref(store)))
    other = 2 * culprit + 1 - RANK
    check(library.rankrun_store_get(store, b"address/%d" % other, 60000, ctypes.byref(value)))
    check(library.rankrun_store_set(store, b"address/%d" % RANK, b"here", 4))


def collect():
    """The culprit collects a result of each rank, and forgets that it has none for itself."""
    result = array.array("d", [1.0])
    if not is_culprit:
        check(library.rankrun_send(None, tensor_of(result), culprit, 0, -1))
        return
    for _ in range(SIZE):
        check(library.rankrun_recv(None, tensor_of(result), ANY_SOURCE, 0, -1, None))


def clean_text():
    """A pattern that takes time without end for one text."""
    if is_culprit:
        re.match(r"(\w+\s?)+$", "a" * 60 + "!")


WAYS = {"any": collect, "keys": exchange_keys, "order": sum_layers, "pattern": clean_text}

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
