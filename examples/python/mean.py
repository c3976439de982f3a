"""The C ABI from Python, with nothing but the standard library: the mean of
numbers that are spread over all ranks.

  rankrun -n 4 mean.py [librankrun.so.0]
"""

import array
import ctypes
import os
import pathlib
import sys


class Tensor(ctypes.Structure):
    """rankrun_tensor of <rankrun/c/types.h>."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("row", ctypes.c_size_t),
        ("device_index", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device_type", ctypes.c_uint8),
        ("reserved", ctypes.c_uint16),
    ]


class Op(ctypes.Structure):
    """rankrun_reduce_op."""

    _fields_ = [("factor", ctypes.c_double), ("kind", ctypes.c_uint8)]


DTYPES = {"f": 0, "d": 1, "b": 4, "h": 5, "i": 6, "q": 7, "B": 8, "H": 9, "I": 10, "Q": 11}
AVERAGE = 1
DEFAULT_TIMEOUT = -1


def find_library():
    """Returns the library of the rankrun that started this program, or the loader's default."""
    name = "librankrun.so.0"
    program = pathlib.Path(f"/proc/{os.getppid()}/exe").resolve()
    for folder in ("lib", "lib64", f"lib/{os.uname().machine}-linux-gnu"):
        path = program.parent.parent / folder / name
        if path.exists():
            return str(path)
    return name


library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else find_library())
library.rankrun_last_error.restype = ctypes.c_char_p
# Without argument types Python would pass 32-bit ints.
library.rankrun_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.POINTER(Op), ctypes.c_int64, ctypes.c_void_p]
library.rankrun_init.argtypes = [ctypes.c_void_p]
library.rankrun_destroy.argtypes = [ctypes.c_void_p]
library.rankrun_world_size.argtypes = [ctypes.c_void_p]


def check(status):
    """Raises the error of the library's last call."""
    if status != 0:
        raise RuntimeError(library.rankrun_last_error().decode())


def tensor_of(values):
    """A view of an array.array, which must live until the call is done."""
    address, count = values.buffer_info()
    return Tensor(data=address, count=count, dtype=DTYPES[values.typecode])


def main():
    """Prints the mean and returns whether it is right."""
    check(library.rankrun_init(None))
    rank, ranks = int(os.environ["RANK"]), library.rankrun_world_size(None)
    values = array.array("d", [rank, 10.0 * rank])
    check(library.rankrun_all_reduce(
        None, tensor_of(values), Op(kind=AVERAGE), DEFAULT_TIMEOUT, None))
    mean = (ranks - 1) / 2
    good = values.tolist() == [mean, 10 * mean]
    print(f"rank {rank}: the means are {values.tolist()}: {'right' if good else 'WRONG'}")
    check(library.rankrun_destroy(None))
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
