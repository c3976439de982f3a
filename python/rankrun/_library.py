"""Calls of librankrun, which raise RuntimeError with its text."""

import ctypes
import functools
import os

from rankrun import _places


_FLOAT64 = 1  # a rankrun_dtype
_DEFAULT_TIMEOUT = -1


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("row", ctypes.c_size_t),
        ("device_index", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device_type", ctypes.c_uint8),
        ("reserved", ctypes.c_uint16),
    ]


@functools.cache
def _library():
    try:
        path = _places.get_library()
    except FileNotFoundError:
        path = _places.NAME  # in a folder that the loader knows
    library = ctypes.CDLL(path)
    library.rankrun_last_error.restype = ctypes.c_char_p
    library.rankrun_bytes_release.restype = None
    library.rankrun_breakpoint_inside.argtypes = (
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.POINTER(_Bytes)),
    )
    library.rankrun_all_reduce.argtypes = (
        ctypes.c_void_p,
        ctypes.POINTER(_Tensor),
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    return library


def _check(status):
    if status != 0:
        text = _library().rankrun_last_error().decode(errors="replace")
        raise RuntimeError(text.replace("BreakpointInside: ", "breakpoint: ", 1))


def join_world():
    """Makes this process a rank of the world, if it is none."""
    if not _library().rankrun_initialized():
        _check(_library().rankrun_init(None))


def leave_world():
    _check(_library().rankrun_destroy(None))


def all_reduce(numbers):
    """Returns the sums over all ranks of a list of numbers."""
    array = (ctypes.c_double * len(numbers))(*numbers)
    tensor = _Tensor(ctypes.addressof(array), len(numbers), dtype=_FLOAT64)
    _check(_library().rankrun_all_reduce(None, tensor, None, _DEFAULT_TIMEOUT, None))
    return list(array)


def breakpoint_inside(rank, skip, file, line):
    """Returns the path of the terminal that this rank may use, or None."""
    terminal = ctypes.POINTER(_Bytes)()
    _check(
        _library().rankrun_breakpoint_inside(
            rank, skip, os.fsencode(file), line, ctypes.byref(terminal)
        )
    )
    if not terminal:
        return None
    path = ctypes.string_at(terminal.contents.data, terminal.contents.size)
    _library().rankrun_bytes_release(terminal)
    return os.fsdecode(path)


def let_others_go_on():
    _check(_library().rankrun_let_others_go_on())


def return_terminal():
    _check(_library().rankrun_return_terminal())
