"""PyTorch's own TCPStore client against the agent's store.

Each step runs on the agent's store and on a server of PyTorch's own; what they
return must be equal.
"""
import datetime
import os
import threading

import torch.distributed as dist

rank = int(os.environ["RANK"])
MiB = 1 << 20


def seconds(count):
    return datetime.timedelta(seconds=count)


def agents_store():
    return dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world_size=2, is_master=False,
        timeout=seconds(30))


def outcome(step, store):
    """What `step` returns, or which error of the store ended it."""
    try:
        return step(store)
    except dist.DistError as error:
        return type(error).__name__, str(error).split("\n")[0]


def values_of_all_sizes(store):
    results = []
    for size in (0, 1, 1439, 1440, 4095, 4096, MiB, 8 * MiB):
        value = (bytes(range(256)) * (size // 256 + 1))[:size]
        store.set("sized", value)
        results.append(store.get("sized") == value)
    return results


def keys_of_all_sizes(store):
    results = []
    for key in ("", "nul\0key", "k" * 8191, "päth/with/slashes"):
        store.set(key, "v")
        results.append((store.get(key), store.check([key]), store.delete_key(key)))
    return results


def appended(store):
    for part in ("one", b"\0two\0", ""):
        store.append("appended", part)
    store.append("counted", "1")
    store.append("counted", "2")
    return store.get("appended"), store.add("counted", 1)


def multi(store):
    store.multi_set(["m1", "m2", "m3"], ["1", b"\0\0", ""])
    many = [f"many{i}" for i in range(3000)]
    store.multi_set(many, [key * 3 for key in many])
    got = store.multi_get(many)
    deleted = sum(store.delete_key(key) for key in many)
    return store.multi_get(["m3", "m1", "m2", "m1"]), got == [(k * 3).encode() for k in many], deleted


def counters(store):
    store.set("text", " 12 monkeys")
    return [store.add("n", 5), store.add("n", -7), store.get("n"), store.add("zero", 0),
            store.check(["zero"]), store.add("text", 1), store.add("big", 2**63 - 1)]


def compare_sets(store):
    return [store.compare_set("cs", "", "first"), store.compare_set("cs", "wrong", "second"),
            store.compare_set("cs", "first", "second"), store.compare_set("none", "expected", "x"),
            store.check(["none"]), store.delete_key("cs"), store.delete_key("cs")]


def queues(store):
    for item in ("a", b"b\0", "", "x" * MiB):
        store.queue_push("q", item)
    results = [store.queue_len("q"), store.check(["q"]), store.delete_key("q")]
    results += [store.queue_pop("q") for _ in range(4)]
    return results + [store.queue_len("q"), store.check(["q"]), store.queue_len("unknown")]


def pop_of_an_empty_queue(store):
    return store.queue_pop("empty queue", block=False)


def blocking_pop(store):
    clone = store.clone()
    pusher = threading.Thread(target=lambda: clone.queue_push("blocking", "item"))
    pusher.start()
    item = store.queue_pop("blocking")
    pusher.join()
    return item


def timed_out_wait(store):
    return store.wait(["never", "ever"], datetime.timedelta(milliseconds=50))


def timed_out_pop(store):
    store.set_timeout(datetime.timedelta(milliseconds=50))
    try:
        return store.queue_pop("nothing comes")
    finally:
        store.set_timeout(seconds(30))


def in_step_after_timeouts(store):
    return store.add("n", 0)


def prefixed(store):
    outer, inner = dist.PrefixStore("p", store), dist.PrefixStore("p2", dist.PrefixStore("p", store))
    outer.set("k", "outer")
    inner.set("k", "inner")
    inner.append("k", "!")
    outer.multi_set(["a", "b"], ["1", "2"])
    outer.queue_push("q", "m")
    return [outer.get("k"), inner.get("k"), store.get("p/k"), store.get("p/p2/k"),
            outer.multi_get(["b", "a"]), outer.compare_set("k", "outer", "new"), outer.add("n", 2),
            outer.check(["k", "a"]), outer.delete_key("a"), store.queue_pop("p/q"),
            outer.num_keys() == store.num_keys()]


def cloned(store):
    clone = store.clone()
    clone.set("by clone", "v")
    return store.get("by clone"), clone.get("by clone"), clone.num_keys() == store.num_keys()


def key_count_changes(store):
    before = store.num_keys()
    store.set("one more", "")
    store.queue_push("no key", "")
    store.queue_pop("no key")
    return store.num_keys() - before


def listed(store):
    return sorted(key for key in store.list_keys() if not key.startswith("rank"))


def barriers(store):
    if not hasattr(store, "barrier"):
        return None
    clone = store.clone()
    other = threading.Thread(target=lambda: clone.barrier("b", 2, seconds(20)))
    other.start()
    store.barrier("b", 2, seconds(20))
    other.join()
    return store.get("b")


def timed_out_barrier(store):
    return store.barrier("b2", 2, datetime.timedelta(milliseconds=50))


STEPS = [values_of_all_sizes, keys_of_all_sizes, appended, multi, counters, compare_sets, queues,
         pop_of_an_empty_queue, blocking_pop, timed_out_wait, timed_out_pop,
         in_step_after_timeouts, prefixed, cloned, key_count_changes, barriers, timed_out_barrier,
         listed]

ours = agents_store()
ours.set(f"rank{rank}", f"value{rank}")
assert ours.get(f"rank{1 - rank}") == f"value{1 - rank}".encode()
ours.wait(["rank0", "rank1"])
assert ours.add("rank counter", 5) in (5, 10)

if rank == 0:
    theirs = dist.TCPStore("127.0.0.1", 0, world_size=1, is_master=True, timeout=seconds(30))
    for step in STEPS:
        expected, result = outcome(step, theirs), outcome(step, ours)
        print(step.__name__)
        assert result == expected, (step.__name__, str(result)[:500], str(expected)[:500])
    ours.set("rank done", "")
ours.wait(["rank done"], seconds(60))
