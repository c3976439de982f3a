#!/usr/bin/env python3
"""library_jobs.py LIBRARY RANK WAY: jobs with librankrun, called from Python by ctypes. Rank RANK fails
or hangs at step 3 by WAY."""
import array
import ctypes
import multiprocessing
import os
import sys
import threading
import time

from common import ATTEMPT, RANK, ready, wait_for_all

library, culprit, way = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
is_culprit = RANK == culprit
FLOAT64, INT64 = 1, 7


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


def check(status):
    if status != 0:
        raise RuntimeError(library.rankrun_last_error().decode())


def tensor_of(values, dtype):
    address, count = values.buffer_info()
    return ctypes.byref(Tensor(data=address, count=count, dtype=dtype))


def sum_up(code="d", dtype=FLOAT64):
    values = array.array(code, [1] * 16)
    check(library.rankrun_all_reduce(None, tensor_of(values, dtype), None, -1, None))


def pass_on():
    """The culprit sends its layer to the rank after it, which expects a smaller one."""
    values = array.array("d", [1.0] * (24 if is_culprit else 16))
    if is_culprit:
        check(library.rankrun_send(None, tensor_of(values, FLOAT64), culprit + 1, 0, -1))
    if RANK == culprit + 1:
        check(library.rankrun_recv(None, tensor_of(values, FLOAT64), culprit, 0, -1, None))


def wait_for_the_plan():
    """The culprit should set a key; the others wait for it in the store of the job."""
    if is_culprit:
        work = threading.Semaphore(0)
        work.acquire()  # for a thread that was never started
    options = TcpStoreOptions()
    options.size = ctypes.sizeof(options)
    check(library.rankrun_tcp_store_options_default(ctypes.byref(options)))
    options.host, options.port = os.environ["MASTER_ADDR"].encode(), int(os.environ["MASTER_PORT"])
    store, value = ctypes.c_void_p(), ctypes.c_void_p()
    check(library.rankrun_tcp_store(ctypes.byref(options), ctypes.byref(store)))
    check(library.rankrun_store_get(store, b"plan", 60000, ctypes.byref(value)))


def never_ends():
    time.sleep(3600)


def at_step(step):
    if way == "slow-peer" and RANK == 3:  # the last rank is slow, but comes each time
        time.sleep(0.7)
    if way == "slow-peer" and step == 3 and is_culprit:
        helper = multiprocessing.Process(target=never_ends)
        helper.start()
        helper.join()
    if way == "twice" and step == 3:  # another failure in each attempt
        if ATTEMPT == 0 and RANK == culprit - 1:
            raise FloatingPointError("loss scale is below its minimum (0.0001)")
        if ATTEMPT == 1 and is_culprit:
            os.read(os.pipe()[0], 1)
    if way == "message" and step == 3:
        pass_on()
    if way == "plan" and step == 3:
        wait_for_the_plan()


check(library.rankrun_init(None))
ready()
wait_for_all()
for step in range(2000):
    at_step(step)
    if way == "halves" and step == 3 and RANK // 2 == culprit // 2:
        sum_up("q", INT64)  # the settings of this node differ
    else:
        sum_up()
    if step > 5:
        time.sleep(0.005)
check(library.rankrun_destroy(None))
