"""A worker that has rankrun's C ABI by ctypes alone, as any language could:
results, an error's text, a handle, a store. Under `rankrun -n 2`.
"""

import array
import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

LIBRARY = ctypes.CDLL(sys.argv[1])
DEFAULT = -1
INVALID, MISMATCH = 1, 4
FLOAT32, FLOAT64, UINT8 = 0, 1, 8


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("count", c_size_t),
        ("row", c_size_t),
        ("device_index", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device_type", ctypes.c_uint8),
        ("reserved", ctypes.c_uint16),
    ]


class Bytes(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class InitOptions(Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("rank", ctypes.c_int32),
        ("world_size", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("timeout_ms", c_int64),
        ("backend", c_char_p),
        ("init_method", c_char_p),
        ("store", c_void_p),
    ]


def function(name, *arguments, result=c_int):
    found = getattr(LIBRARY, "rankrun_" + name)
    found.argtypes, found.restype = arguments, result
    return found


last_error = function("last_error", result=c_char_p)
init_options_default = function("init_options_default", POINTER(InitOptions))
init = function("init", POINTER(InitOptions))
initialized = function("initialized")
destroy = function("destroy", c_void_p)
global_rank = function("global_rank", c_void_p)
world_size = function("world_size", c_void_p)
all_reduce = function("all_reduce", c_void_p, POINTER(Tensor), c_void_p, c_int64, c_void_p)
work_wait = function("work_wait", c_void_p)
work_release = function("work_release", c_void_p, result=None)
group_state = function("group_state", c_void_p)
all_gather_object = function(
    "all_gather_object", c_void_p, POINTER(Bytes), c_int64, POINTER(POINTER(Bytes)))
bytes_release = function("bytes_release", POINTER(Bytes), result=None)
hash_store = function("hash_store", c_int64, POINTER(c_void_p))
store_set = function("store_set", c_void_p, c_char_p, c_char_p, c_size_t)
store_get = function("store_get", c_void_p, c_char_p, c_int64, POINTER(POINTER(Bytes)))
store_release = function("store_release", c_void_p, result=None)


def check(status):
    assert status == 0, (status, last_error().decode())


def expect_error(status, wanted, text):
    said = last_error().decode()
    assert status == wanted and text in said, (status, said)


def tensor_of(values):
    address, count = values.buffer_info()
    return Tensor(data=address, count=count, dtype={"f": FLOAT32, "d": FLOAT64}[values.typecode])


def taken(given, count):
    values = [ctypes.string_at(given[i].data, given[i].size) for i in range(count)]
    bytes_release(given)
    return values


def start():
    options = InitOptions(size=ctypes.sizeof(InitOptions))
    check(init_options_default(byref(options)))
    assert options.init_method == b"env://" and options.rank == -1
    options.timeout_ms = 60000
    check(init(byref(options)))


def reduce_an_array(rank, ranks):
    values = array.array("d", [rank, 1.5])
    check(all_reduce(None, tensor_of(values), None, DEFAULT, None))
    assert values.tolist() == [sum(range(ranks)), 1.5 * ranks], values

    buffer = (ctypes.c_uint8 * 3)(1, 2, 3)
    work = c_void_p()
    tensor = Tensor(data=ctypes.addressof(buffer), count=3, dtype=UINT8)
    check(all_reduce(None, tensor, None, DEFAULT, byref(work)))
    check(work_wait(work))
    work_release(work)
    assert list(buffer) == [ranks, 2 * ranks, 3 * ranks], list(buffer)


def gather_objects(rank, ranks):
    text = b"\x0c" * (rank + 1)
    mine = Bytes(ctypes.cast(ctypes.c_char_p(text), c_void_p), len(text))
    everyones = POINTER(Bytes)()
    check(all_gather_object(None, byref(mine), DEFAULT, byref(everyones)))
    assert taken(everyones, ranks) == [b"\x0c" * (r + 1) for r in range(ranks)]


def use_a_store():
    store = c_void_p()
    value = POINTER(Bytes)()
    check(hash_store(DEFAULT, byref(store)))
    check(store_set(store, b"key", b"a\0b", 3))
    check(store_get(store, b"key", DEFAULT, byref(value)))
    assert taken(value, 1) == [b"a\0b"]
    store_release(store)


def fail(rank):
    expect_error(work_wait(None), INVALID, "work is NULL")
    values = array.array("f", [0.0] * (rank + 1))
    expect_error(all_reduce(None, tensor_of(values), None, DEFAULT, None),
                 MISMATCH, f"{rank + 1} x float32")
    assert group_state(None) != 0


expect_error(all_reduce(None, Tensor(), None, DEFAULT, None), INVALID, "no world process group")
for again in range(2):  # the world can be created again after its end
    start()
    RANK, RANKS = global_rank(None), world_size(None)
    assert RANKS == 2, RANKS
    reduce_an_array(RANK, RANKS)
    gather_objects(RANK, RANKS)
    use_a_store()
    fail(RANK)
    check(destroy(None))
    assert not initialized()
print(f"rank {RANK}: the C ABI works by ctypes")
