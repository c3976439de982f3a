"""Stores of torch.distributed as those of librankrun."""

import time
import uuid

from torch import distributed as dist

from rankrun import _native
from rankrun.torch._errors import call

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


def _below_prefixes(store):
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store


def _await(store, keys, timeout_ms):
    """Returns whether the keys exist within the time.

    Asks again and again, because a wait of PyTorch's client prints a warning when its time is over.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    pause = _FIRST_PAUSE
    while not store.check(keys):
        if time.monotonic() >= deadline:
            return False
        time.sleep(min(pause, max(0, deadline - time.monotonic())))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


class _Adapter:
    """A store of PyTorch for _native.own_store."""

    def __init__(self, store):
        self._store = store

    def set(self, key, value):
        self._store.set(key, value)

    def get(self, key, timeout_ms):
        self.wait([key], timeout_ms)
        return self._store.get(key)

    def add(self, key, delta):
        return self._store.add(key, delta)

    def check(self, keys):
        return self._store.check(keys)

    def wait(self, keys, timeout_ms):
        if not _await(self._store, keys, timeout_ms):
            raise _native.DistStoreError(f"not set within {timeout_ms} ms: {', '.join(keys)}")

    def compare_set(self, key, expected, desired):
        return self._store.compare_set(key, expected, desired)

    def delete(self, key):
        return self._store.delete_key(key)

    def num_keys(self):
        return self._store.num_keys()


def client_of(store, rank, name, timeout_ms):
    """Returns a store of _native in which the ranks of one group meet.

    For a TCPStore it is a client of our own, which waits without PyTorch's warnings and sees the
    deaths of other ranks. PyTorch does not tell the prefix of a PrefixStore, so rank 0 chooses one.

    name: of the group. Groups of one name that meet in the store one after the other are told apart
    by the number of times that each of their ranks has come.
    """
    below = _below_prefixes(store)
    if not isinstance(below, dist.TCPStore):
        return call(_native.own_store, _Adapter(store), timeout_ms)
    times = store.add(f"rankrun/{name}/came/{rank}", 1)
    key = f"rankrun/{name}/{times}"
    if rank == 0:
        prefix = uuid.uuid4().hex
        store.set(key, prefix)
    else:
        if not _await(store, [key], timeout_ms):
            raise dist.DistBackendError(
                f"init_process_group: rank 0 has not joined within {timeout_ms} ms"
            )
        prefix = store.get(key).decode()
    tcp = call(
        _native.tcp_store, below.host, below.port, -1, False, timeout_ms, False, -1, False
    )
    return call(_native.prefix_store, f"rankrun/{prefix}", tcp)
