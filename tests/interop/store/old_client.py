"""Every method of PyTorch 1.13's store, by its unmodified client, on both servers."""
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist
from side_by_side import (STEPS, MiB, agents_server, attempt, compare, pytorchs_server_process,
                          seconds, step)
from values import EVERY_BYTE  # and a step

SHORT = seconds(0.05)  # time-out of waits that must fail
THREADS = 16


def clones(server):
    return [server.open() for _ in range(THREADS)]


@step
def values_of_all_sizes(store):
    results = []
    for size in (0, 1, 255, 256, 1439, 1440, 4095, 4096, MiB, 8 * MiB, 64 * MiB):
        value = (EVERY_BYTE * (size // 256 + 1))[:size]
        store.set("sized", value)
        results.append(store.get("sized") == value)
    return results, store.delete_key("sized")


@step
def keys_of_all_kinds(store):
    results = []
    for key in ("", " ", "nul\0key", "k" * 8191, "päth/with/slashes", "/", "//", "日本語",
                "init/", "\r\n", "-", b"bytes", b"\xff"):
        store.set(key, "v")
        results.append((store.get(key), store.wait([key, key]), store.delete_key(key),
                        store.delete_key(key), store.add(key, 1), store.delete_key(key)))
    return results


@step
def counters(store):
    results = [store.add("n", 5), store.add("n", -7), store.get("n"), store.add("zero", 0),
               store.get("zero"), store.add("big", 2**63 - 1), store.get("big")]
    for text in ("12", " 12 monkeys", "+7", "-7", "0x10", "1.5", "007", str(-(2**63))):
        store.set("text", text)
        results.append((text, store.add("text", 0), store.get("text")))
    return results


@step
def a_counter_of_no_number(store):
    store.set("no number", "text")
    return attempt(store.add, "no number", 1), attempt(store.num_keys)


@step
def unchanged_by_that(store):
    return store.get("no number")


@step
def compare_sets(store):
    return [store.compare_set("cs", "", "first"), store.compare_set("cs", "wrong", "second"),
            store.compare_set("cs", "first", "second"), store.compare_set("cs", "", "third"),
            store.get("cs"), store.compare_set("cs", "second", b"\0\xff"),
            store.compare_set("none", "expected", "x"), store.delete_key("none"),
            store.compare_set("empty", "", ""), store.delete_key("empty"),
            store.delete_key("cs"), store.delete_key("cs")]


@step
def waits(store):
    store.set("w1", "")
    store.set("w2", "")
    return store.wait([]), store.wait(["w1", "w2", "w1"]), store.wait(["w1"], seconds(20))


@step
def a_wait_that_times_out(store):
    return attempt(store.wait, ["never"], SHORT)


@step
def a_get_that_times_out(store):
    store.set_timeout(SHORT)
    return attempt(store.get, "never")


@step
def wrong_arguments(store):
    return [attempt(store.set, "k", 1), attempt(store.add, "k", "1"), attempt(store.get),
            attempt(store.wait, ["k"], 5)]


@step
def properties(store):
    before = store.timeout
    store.set_timeout(seconds(7))
    return before, store.timeout, store.host


@step
def prefixed(store):
    outer = dist.PrefixStore("p", store)
    inner = dist.PrefixStore("p2", outer)
    outer.set("k", "outer")
    inner.set("k", "inner")
    return [outer.get("k"), inner.get("k"), store.get("p/k"), store.get("p/p2/k"),
            outer.compare_set("k", "outer", "new"), outer.add("n", 2), inner.delete_key("k"),
            outer.num_keys() == store.num_keys(), attempt(inner.wait, ["k"], SHORT)]


@step
def key_count(store):
    before = store.num_keys()
    store.set("one more", "")
    return before, store.num_keys()


def together(work, server):
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(THREADS), clones(server)))


def own_keys(index, store):
    results = []
    for i in range(2):  # few, because 1.13's server takes 40 ms for many replies
        store.set(f"{index}/{i}", str(i))
        results.append((store.get(f"{index}/{i}"), store.compare_set(f"{index}/{i}", str(i), ""),
                        store.delete_key(f"{index}/{i}")))
        store.add("sum", index)
    return results


def meet(index, store):
    for i in range(20):
        store.set(f"round {i}/{index}", str(index))
        store.wait([f"round {i}/{other}" for other in range(THREADS)])


def many_threads(server):
    store = server.open()
    with ThreadPoolExecutor(THREADS) as threads:
        of_one_client = list(threads.map(own_keys, range(THREADS), [store] * THREADS))
    return (together(own_keys, server), of_one_client, together(meet, server),
            store.add("sum", 0), store.num_keys())


# Intended differences: case, 1.13's result, rankrun's, reason.


def a_key_above_8_kib(server):
    return attempt(server.open().add, "k" * 8192, 1)


def a_key_that_comes_long_after_a_timeout(server):
    store, other = server.open(), server.open()
    attempt(store.wait, ["late"], SHORT)
    store.num_keys()
    other.set("late", "")
    other.num_keys()  # waits until the set has been carried out
    return store.add("number", 1)


DIFFERENCES = [
    (a_key_above_8_kib, 1, ("RuntimeError", "connection lost"), "the limit of PyTorch since 2.4"),
    # 1.13 takes the reply to the WAIT for the first byte of the sum.
    (a_key_that_comes_long_after_a_timeout, 256, 1, "the next request ends a WAIT"),
]

with pytorchs_server_process() as theirs:
    ours = agents_server()
    compare(STEPS, ours, theirs)
    assert many_threads(ours) == many_threads(theirs)
    for case, of_pytorch, of_rankrun, reason in DIFFERENCES:
        results = case(theirs), case(ours)
        assert results == (of_pytorch, of_rankrun), (case.__name__, results)
        print(f"different {case.__name__}: {reason}", flush=True)
