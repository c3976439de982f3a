"""What the vectors do not have: objects of the standard library as tensors, errors, stores, asyncio.

Usage: rankrun -n 3 operations.py
"""

import array
import asyncio
import datetime
import math
import tempfile
import threading
import warnings

from rankrun import distributed as dist
from rankrun.distributed import _cbor

SHORT = datetime.timedelta(milliseconds=50)


def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def check(text, *words):
    if any(word not in text for word in words):
        raise AssertionError(f"want {words} in: {text}")


def buffers_are_tensors(rank, size):
    for data in (array.array("f", [1, 2]), bytearray(b"\1\2"), memoryview(bytearray(4)).cast("i")):
        before = list(data)
        dist.all_reduce(data)
        assert list(data) == [size * each for each in before], data
    check(error_of(lambda: dist.all_reduce(b"12")), "BufferError", "writable")
    check(error_of(lambda: dist.all_reduce([1])), "TypeError", "__dlpack__")
    check(error_of(lambda: dist.all_reduce(array.array("u", "a"))), "format")


def work_can_be_awaited(rank, size):
    data = array.array("q", [rank])

    async def reduce():
        work = dist.all_reduce(data, async_op=True)
        await work
        return work

    work = asyncio.run(reduce())
    assert data[0] == size * (size - 1) // 2 and work.is_success() and work.exception() is None
    if rank == 0:
        work = dist.irecv(data, 1)
        check(error_of(lambda: work.wait(SHORT)), "DistTimeoutError", "it goes on")
        assert not work.is_completed()
        dist.send(data, 1)
        assert work.wait() and work.source_rank() == 1 and data[0] == 7
    if rank == 1:
        dist.recv(array.array("q", [0]), 0)
        dist.send(array.array("q", [7]), 0)


def objects_are_those_of_cbor(rank, size):
    values = [None, True, -1, 2**63, 1.5, math.inf, "text", b"bytes", [1, [2]], {"key": {1: []}}]
    everyone = [None] * size
    dist.all_gather_object(everyone, values)
    assert everyone == [values] * size, everyone
    check(error_of(lambda: dist.all_gather_object(everyone, {1, 2})), "set", "use_pickle=True")
    dist.all_gather_object(everyone, {rank}, use_pickle=True)
    assert everyone == [{r} for r in range(size)]
    for wrong in (b"", b"\x82\x01", b"\x01\x01", b"\xff", b"\x1c", b"\x9b" + b"\xff" * 8, b"\x81" * 200):
        check(error_of(lambda: _cbor.decode(wrong)), "ValueError", "no object in CBOR")
    assert _cbor.decode(bytes.fromhex("9f018202039fffff")) == [1, [2, 3], []]
    assert _cbor.decode(bytes.fromhex("c11a514b67b0")) == 1363896240


def groups_do_nothing_on_other_ranks(rank, size):
    group = dist.new_group([0, 2], group_desc="even")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        data = array.array("d", [rank])
        dist.all_reduce(data, group=group)
    if rank == 1:
        assert group is dist.GroupMember.NON_GROUP_MEMBER and data[0] == 1
        check(str(warned[0].message), "all_reduce does nothing")
    else:
        assert data[0] == 2 and group.group_desc == "even" and dist.get_rank(group) == rank // 2
    parts = dist.split_group(split_ranks=[[0, 1], [2]])
    assert parts.size() == (1 if rank == 2 else 2)
    check(error_of(lambda: dist.broadcast(data, src=1, group_src=1)), "both given")
    check(error_of(lambda: dist.send(data, 5)), "dst is 5", "[0, 1, 2]")
    check(error_of(lambda: dist.init_process_group(device_id=1)), "device_id")


def barriers_name_the_missing(rank, size):
    group = dist.new_group()
    if rank == 0:
        error = error_of(lambda: dist.monitored_barrier(group, SHORT, wait_all_ranks=True))
        check(error, "Dist", "1", "2")
    dist.barrier()


def stores(rank, size):
    with tempfile.TemporaryDirectory() as folder:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True)
        for store in (server, dist.TCPStore("localhost", server.port), dist.HashStore(),
                      dist.FileStore(folder + "/store"), dist.PrefixStore("a", server)):
            store.set("key", "value")
            assert store.get("key") == b"value" and store.check(["key"]) and not store.check(["b"])
            assert store.add("number", 2) == 2 and store.add("number", -1) == 1
            assert store.compare_set("key", b"value", "new") == b"new"
            assert store.delete_key("key") and not store.delete_key("key")
            check(error_of(lambda: store.wait(["key"], SHORT)), "DistStoreError", "key")
            store.set_timeout(SHORT)
            assert store.timeout == SHORT
            check(error_of(lambda: store.get("key")), "DistStoreError", "key")
            store.delete_key("number")
            check(error_of(lambda: store.set("a\0b", "")), "NUL")
        server.queue_push("queue", "first")
        assert server.queue_len("queue") == 1 and server.queue_pop("queue") == b"first"
        check(error_of(lambda: server.queue_pop("queue", block=False)), "DistStoreError")
        server.multi_set(["x", "y"], ["1", "2"])
        assert server.multi_get(["x", "y"]) == [b"1", b"2"] and "x" in server.list_keys()
        # Another thread on a connection of its own, while this one waits.
        other = server.clone()
        threading.Thread(target=lambda: other.set("late", "1")).start()
        server.set_timeout(datetime.timedelta(seconds=60))
        assert server.get("late") == b"1"


def main():
    check(error_of(dist.get_rank), "init_process_group")
    dist.init_process_group(timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.is_initialized() and dist.is_torchelastic_launched() and dist.get_backend() == "shm"
    assert dist.is_backend_available("tcp") and not dist.is_backend_available("none")
    for test in (buffers_are_tensors, work_can_be_awaited, objects_are_those_of_cbor,
                 groups_do_nothing_on_other_ranks, barriers_name_the_missing, stores):
        try:
            test(rank, size)
        except Exception as error:
            raise AssertionError(f"{test.__name__} on rank {rank}: {error}") from error
        dist.barrier()
    error = error_of(lambda: dist.all_reduce(array.array("d", [1] * (1 + rank))))
    check(error, "DistMismatchError", "rank 0", "rank 2")
    check(error_of(dist.group.WORLD.check), "DistBackendError", "AllReduce")
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print("passed")


main()
