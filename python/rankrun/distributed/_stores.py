"""Stores: keys are texts, values bytes."""

import datetime

from rankrun import _native
from rankrun._time import milliseconds

_USUAL = datetime.timedelta(seconds=300)


def handle_of(store):
    if store is not None and not isinstance(store, Store):
        raise TypeError(f"store: want one of rankrun.distributed, not {store!r}")
    return store._handle if store is not None else None


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What all stores have. Time-outs are timedeltas; None is that of the store."""

    def __init__(self, handle):
        self._handle = handle

    def set(self, key, value):
        """Sets a key to a text or bytes."""
        _native.store_set(self._handle, key, _bytes(value))

    def get(self, key, timeout=None):
        """Returns the value of a key as bytes, once it is there."""
        return _native.store_get(self._handle, key, milliseconds(timeout))

    def add(self, key, amount):
        """Adds to the number of a key, which begins with 0. Returns the sum."""
        return _native.store_add(self._handle, key, amount)

    def check(self, keys):
        """Returns whether all keys are there."""
        return _native.store_check(self._handle, keys)

    def wait(self, keys, timeout=None):
        """Waits until all keys are there."""
        _native.store_wait(self._handle, keys, milliseconds(timeout))

    def barrier(self, key, world_size, timeout=None):
        """Waits until as many have called it with this key."""
        _native.store_barrier(self._handle, key, world_size, milliseconds(timeout))

    def compare_set(self, key, expected_value, desired_value):
        """Sets a key if it has the expected value, or if it is absent and that is empty. Returns
        the value that it then has."""
        return _native.store_compare_set(
            self._handle, key, _bytes(expected_value), _bytes(desired_value)
        )

    def delete_key(self, key):
        """Returns whether the key was there."""
        return _native.store_delete(self._handle, key)

    def append(self, key, value):
        _native.store_append(self._handle, key, _bytes(value))

    def multi_get(self, keys, timeout=None):
        return _native.store_multi_get(self._handle, keys, milliseconds(timeout))

    def multi_set(self, keys, values):
        _native.store_multi_set(self._handle, keys, [_bytes(value) for value in values])

    def num_keys(self):
        return _native.store_num_keys(self._handle)

    def list_keys(self):
        return [key.decode(errors="replace") for key in _native.store_list_keys(self._handle)]

    def queue_push(self, key, value):
        _native.store_queue_push(self._handle, key, _bytes(value))

    def queue_pop(self, key, block=True):
        """Returns the first value of a queue, once there is one. block=False: raises
        DistStoreError if it is empty."""
        value = _native.store_queue_pop(self._handle, key, -1 if block else 0)
        if value is None:
            raise _native.DistStoreError(f"the queue {key} is empty")
        return value

    def queue_len(self, key):
        return _native.store_queue_length(self._handle, key)

    def has_extended_api(self):
        """Returns whether append, multi_get, multi_set and queues can be used."""
        return _native.store_has_extended_api(self._handle)

    def set_timeout(self, timeout):
        _native.store_set_timeout(self._handle, milliseconds(timeout))

    @property
    def timeout(self):
        return datetime.timedelta(milliseconds=_native.store_timeout(self._handle))

    def clone(self):
        """Returns a store on a connection of its own, for another thread."""
        return Store(_native.store_clone(self._handle))


class TCPStore(Store):
    """A client of a server in another process (rankrun's, PyTorch's or a TCPStore's), or such a
    server and its client, with is_master. world_size: the constructor waits for as many clients."""

    def __init__(self, host_name, port=29500, world_size=None, is_master=False, timeout=_USUAL,
                 wait_for_workers=True, multi_tenant=False, master_listen_fd=None, use_libuv=True):
        if not use_libuv:
            raise ValueError("use_libuv is False: want True, there is one kind of server")
        listen_fd = -1 if master_listen_fd is None else master_listen_fd
        size = -1 if world_size is None else world_size
        super().__init__(_native.tcp_store(
            host_name, port, size, is_master, milliseconds(timeout), wait_for_workers, listen_fd,
            multi_tenant,
        ))
        self.host = host_name
        self.is_master = is_master

    @property
    def port(self):
        return _native.store_port(self._handle)


class FileStore(Store):
    """A store in a file, for processes that share it. world_size: it is deleted with the last."""

    def __init__(self, file_name, world_size=-1):
        super().__init__(
            _native.file_store(file_name, "", world_size, milliseconds(_USUAL))
        )
        self.path = file_name


class HashStore(Store):
    """A store of this process."""

    def __init__(self):
        super().__init__(_native.hash_store(milliseconds(_USUAL)))


class PrefixStore(Store):
    """A part of another store: all keys begin with `prefix`/."""

    def __init__(self, prefix, store):
        super().__init__(_native.prefix_store(prefix, handle_of(store)))
        self.prefix = prefix
        self.underlying_store = store
