"""barrier.py LIBRANKRUN: a caller by rankrun's C ABI and one by PyTorch's client meet at one barrier.

Both orders, plainly and through a prefix, on the agent's server and on PyTorch's.
"""
import ctypes
import sys
import threading

from side_by_side import agents_server, pytorchs_server, seconds

import torch.distributed as dist

LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.rankrun_last_error.restype = ctypes.c_char_p
DEFAULT_TIMEOUT = -1


class TcpStoreOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("port", ctypes.c_uint16),
        ("is_server", ctypes.c_uint16),
        ("world_size", ctypes.c_int32),
        ("wait_for_workers", ctypes.c_int32),
        ("timeout_ms", ctypes.c_int64),
        ("host", ctypes.c_char_p),
    ]


def done(status):
    assert status == 0, LIBRARY.rankrun_last_error()


def open_ours(server):
    options = TcpStoreOptions(size=ctypes.sizeof(TcpStoreOptions))
    done(LIBRARY.rankrun_tcp_store_options_default(ctypes.byref(options)))
    options.host, options.port, options.timeout_ms = server.host.encode(), server.port, 30_000
    store = ctypes.c_void_p()
    done(LIBRARY.rankrun_tcp_store(ctypes.byref(options), ctypes.byref(store)))
    return store


def prefixed(store):
    view = ctypes.c_void_p()
    done(LIBRARY.rankrun_prefix_store(b"p", store, ctypes.byref(view)))
    return view


def meet(ours, theirs, key):
    """Runs both callers twice; each comes first once."""
    def call_ours(which):
        timeout = ctypes.c_int64(DEFAULT_TIMEOUT)
        done(LIBRARY.rankrun_store_barrier(ours, which.encode(), ctypes.c_int32(2), timeout))

    def call_theirs(which):
        theirs.barrier(which, 2, seconds(30))

    for number, (first, second) in enumerate([(call_ours, call_theirs), (call_theirs, call_ours)]):
        which = f"{key}{number}"
        with_first = threading.Thread(target=first, args=(which,))
        with_first.start()
        second(which)
        with_first.join(60)
        assert not with_first.is_alive(), f"{which}: one caller still waits"


for place in (agents_server(), pytorchs_server()):
    library, client = open_ours(place), place.open()
    meet(library, client, "plain")
    meet(prefixed(library), dist.PrefixStore("p", client), "in a prefix")
    for name in ("plain0", "plain1", "p/in a prefix0/num_members", "p/in a prefix1/num_members"):
        assert client.get(name) == b"2", (name, client.get(name))
print("callers of rankrun and of PyTorch met at 8 barriers")
