#!/usr/bin/env python3
"""bindings.py LIBRARY RANK WAY: sums of librankrun, called from Python by ctypes. Rank RANK fails or
hangs at step 3 by WAY."""
import array
import ctypes
import sys
import time

from common import RANK, ready, wait_for_all

library, culprit, way = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


class Tensor(ctypes.Structure):
    """rankrun_tensor."""
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_size_t), ("row", ctypes.c_size_t),
                ("device_index", ctypes.c_int32), ("dtype", ctypes.c_uint8),
                ("device_type", ctypes.c_uint8), ("reserved", ctypes.c_uint16)]


library.rankrun_last_error.restype = ctypes.c_char_p
library.rankrun_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
library.rankrun_init.argtypes = [ctypes.c_void_p]
library.rankrun_destroy.argtypes = [ctypes.c_void_p]


def check(status):
    if status != 0:
        raise RuntimeError(library.rankrun_last_error().decode())


def sum_up():
    values = array.array("d", [1.0] * 16)
    address, count = values.buffer_info()
    tensor = Tensor(data=address, count=count, dtype=1)
    check(library.rankrun_all_reduce(None, ctypes.byref(tensor), None, -1, None))


def fail():
    if way == "raise":
        raise UnicodeEncodeError("ascii", "\u00e9", 0, 1, "ordinal not in range(128)")
    attempt = 0
    while way == "retry":  # for ever: nobody has set a limit
        attempt += 1
        print(f"WARNING bucket not found, attempt {attempt}, waiting for 0.4 s", flush=True)
        time.sleep(0.4)


check(library.rankrun_init(None))
ready()
wait_for_all()
for step in range(2000):
    if step == 3 and RANK == culprit:
        fail()
    sum_up()
    if step > 5:
        time.sleep(0.005)
check(library.rankrun_destroy(None))
