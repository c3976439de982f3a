"""Every method of PyTorch's store, by its unmodified client, on both servers."""
import threading

import torch.distributed as dist
from side_by_side import (STEPS, MiB, agents_server, attempt, compare, pytorchs_server, seconds,
                          step)
from values import EVERY_BYTE  # and a step

SHORT = seconds(0.05)  # time-out of waits that must fail


def set_for_all(store, key, value):
    """Sets a key and waits, because a set has no reply and another client may overtake it."""
    store.set(key, value)
    store.check([key])


def fail_fast(store):
    store.set_timeout(SHORT)
    return store


@step
def values_of_all_sizes(store):
    results = []
    for size in (0, 1, 255, 256, 1439, 1440, 4095, 4096, MiB, 8 * MiB - 1, 8 * MiB):
        value = (EVERY_BYTE * (size // 256 + 1))[:size]
        store.set("sized", value)
        results.append(store.get("sized") == value)
    return results, store.delete_key("sized")


@step
def keys_of_all_kinds(store):
    results = []
    for key in ("", " ", "nul\0key", "k" * 8191, "päth/with/slashes", "/", "//", "日本語",
                "init/", "\r\n", "-", b"bytes"):
        store.set(key, "v")
        results.append((store.get(key), store.check([key]), store.multi_get([key, key]),
                        store.delete_key(key), store.check([key]), store.add(key, 1),
                        store.delete_key(key)))
    return results


@step
def text_is_stored_as_utf8(store):
    store.set("schlüssel", "wert ß")
    return store.get("schlüssel"), store.get("schlüssel".encode())


@step
def keys_that_are_no_utf8(store):
    store.set(b"\xff\xfe", "v")
    return (store.get(b"\xff\xfe"), attempt(store.list_keys),
            attempt(fail_fast(store).get, b"\xff"), store.delete_key(b"\xff\xfe"))


@step
def wrong_arguments(store):
    return [attempt(store.set, "k", 1), attempt(store.set, 1, "v"), attempt(store.add, "k", "1"),
            attempt(store.add, "k", 2**63), attempt(store.add, "k", 1.5), attempt(store.check, 5),
            attempt(store.wait, ["k"], 5), attempt(store.get), attempt(store.multi_set, ["k"], [1])]


@step
def a_missing_key(store):
    fail_fast(store)
    return [attempt(store.get, "missing"), attempt(store.wait, ["missing"]),
            attempt(store.multi_get, ["missing"]), store.check(["missing"]),
            store.delete_key("missing"), store.queue_len("missing"), store.check(["missing"])]


@step
def overwritten(store):
    results = []
    for value in ("first", "", "second", "x" * 5000, b"\0"):
        store.set("again", value)
        results.append(store.get("again"))
    return results


@step
def appended(store):
    for part in ("one", b"\0two\0", "", EVERY_BYTE):
        store.append("appended", part)
    store.append("counted", "1")
    store.append("counted", "2")
    store.append("nothing", "")
    return (store.get("appended"), store.add("counted", 1), store.check(["nothing"]),
            store.get("nothing"))


@step
def appended_beyond_a_value(store):
    for _ in range(3):
        store.append("long", "x" * 4 * MiB)
    return len(store.get("long")), store.delete_key("long")


@step
def multi(store):
    store.multi_set(["m1", "m2", "m3"], ["1", b"\0\0", ""])
    many = [f"many{i}" for i in range(3000)]
    store.multi_set(many, [key * 3 for key in many])
    got = store.multi_get(many)
    deleted = sum(store.delete_key(key) for key in many)
    return (store.multi_get(["m3", "m1", "m2", "m1"]), got == [(k * 3).encode() for k in many],
            deleted, store.multi_get([]), store.multi_set([], []), store.check(["m1", "m1", "m2"]))


@step
def multi_of_one_key_twice(store):
    store.multi_set(["twice", "twice"], ["first", "second"])
    return store.get("twice"), store.multi_get(["twice", "twice"])


@step
def multi_of_different_lengths(store):
    return [attempt(store.multi_set, ["l1", "l2"], ["v"]),
            attempt(store.multi_set, ["l1"], ["v", "w"])]


@step
def multi_with_one_missing(store):
    store.set("there", "v")
    return attempt(fail_fast(store).multi_get, ["there", "missing", "there"])


@step
def counters(store):
    return [store.add("n", 5), store.add("n", -7), store.get("n"), store.add("zero", 0),
            store.get("zero"), store.check(["zero"]), store.add("big", 2**63 - 1),
            store.add("big", 1), store.get("big"), store.add("small", -(2**63)),
            store.add("small", -1), store.get("small")]


@step
def counters_of_text(store):
    results = []
    for text in ("12", " 12 monkeys", "+7", "-7", "0x10", "1.5", "007", "\t\n8", b"9\0" b"9",
                 str(2**63 - 1), str(-(2**63))):
        store.set("text", text)
        results.append((text, store.add("text", 0), store.get("text")))
    return results


@step
def counters_of_no_number(store):
    """Each closes the connection and leaves the value unchanged."""
    results = []
    for text in ("", " ", "abc", "-", "--1", "+ 1", str(2**63), str(-(2**63) - 1), b"\0"):
        clone = store.clone()
        set_for_all(store, "no number", text)
        results.append((attempt(clone.add, "no number", 1), attempt(clone.get, "no number"),
                        store.get("no number")))
    return results


@step
def compare_sets(store):
    return [store.compare_set("cs", "", "first"), store.compare_set("cs", "wrong", "second"),
            store.compare_set("cs", "first", "second"), store.compare_set("cs", "", "third"),
            store.get("cs"), store.compare_set("cs", "second", b"\0\xff"),
            store.compare_set("cs", b"\0\xff", ""), store.compare_set("cs", "", "of empty"),
            store.get("cs"), store.compare_set("none", "expected", "x"), store.check(["none"]),
            store.compare_set("empty", "", ""), store.check(["empty"]), store.delete_key("cs"),
            store.delete_key("cs"), store.compare_set("8 MiB", "", "x" * 8 * MiB) == b"x" * 8 * MiB]


@step
def deleted(store):
    store.set("deleted", "v")
    return [store.delete_key("deleted"), store.check(["deleted"]), store.delete_key("deleted"),
            attempt(fail_fast(store).wait, ["deleted"]), store.add("deleted", 3),
            store.delete_key("deleted"), store.delete_key("")]


@step
def checks(store):
    store.multi_set(["c1", "c2"], ["", ""])
    return [store.check([]), store.check(["c1"]), store.check(["c1", "c2", "c1"]),
            store.check(["c1", "no"]), store.check(["no", "c1"])]


@step
def waits(store):
    store.multi_set(["w1", "w2"], ["", ""])
    return [store.wait([]), store.wait(["w1"]), store.wait(["w1", "w2", "w1"]),
            attempt(store.wait, ["w1", "no"], seconds(0)),
            attempt(store.wait, ["no", "no", "w1"], SHORT), attempt(store.wait, ["", "ä"], SHORT),
            store.add("after", 1)]


CREATIONS = {
    "set": lambda store, key: store.set(key, ""),
    "add": lambda store, key: store.add(key, 0),
    "append": lambda store, key: store.append(key, ""),
    "multi_set": lambda store, key: store.multi_set(["other", key], ["", ""]),
    "compare_set": lambda store, key: store.compare_set(key, "", ""),
    "queue_push": lambda store, key: store.queue_push(key, ""),
    "barrier": lambda store, key: store.barrier(key, 1),
}


@step
def woken_by_each_operation(store):
    """Waits that begin before or after the operation that ends them; wire.py controls the order."""
    clone, results = store.clone(), []
    for name, create in CREATIONS.items():
        key = "woken by " + name
        waiter = threading.Thread(target=lambda: results.append((key, attempt(clone.wait, [key]))))
        waiter.start()
        create(store, key)
        waiter.join()
        results.append((store.check([key]), store.delete_key(key)))
    return results


@step
def queues(store):
    for item in ("a", b"b\0", "", "x" * MiB, EVERY_BYTE):
        store.queue_push("q", item)
    results = [store.queue_len("q"), store.check(["q"]), store.delete_key("q"), store.get("q"),
               store.wait(["q"]), "q" in store.list_keys()]
    results += [store.queue_pop("q", block=i % 2 == 0) for i in range(5)]
    return results + [store.queue_len("q"), store.check(["q"]), store.queue_len("unknown")]


@step
def a_queue_and_a_key_of_one_name(store):
    store.set("both", "value")
    store.queue_push("both", "item")
    return [store.get("both"), store.queue_len("both"), store.delete_key("both"), store.get("both"),
            store.check(["both"]), store.queue_pop("both"), store.check(["both"])]


@step
def empty_queues(store):
    fail_fast(store)
    return [attempt(store.queue_pop, "none", block=False), attempt(store.queue_pop, "none"),
            store.queue_len("none"), store.check(["none"]), attempt(store.get, "none")]


@step
def blocking_pop(store):
    clone = store.clone()
    pusher = threading.Thread(target=lambda: clone.queue_push("blocking", "item"))
    pusher.start()
    item = store.queue_pop("blocking")
    pusher.join()
    return item


@step
def in_step_after_timeouts(store):
    fail_fast(store)
    results = []
    for i in range(20):
        results.append(attempt(store.wait, ["never", str(i)], seconds(0.001)))
        results.append(store.add("after timeouts", 1))
    return results


@step
def barriers(store):
    clones = [store.clone() for _ in range(4)]
    threads = [threading.Thread(target=clone.barrier, args=("b", 5)) for clone in clones]
    for thread in threads:
        thread.start()
    store.barrier("b", 5, seconds(20))
    for thread in threads:
        thread.join()
    return store.get("b"), store.barrier("b", 5), store.get("b"), store.delete_key("b")


@step
def barriers_of_odd_sizes(store):
    return ([store.barrier(f"alone{size}", size) for size in (1, 0, -1)], store.get("alone1"),
            attempt(store.barrier, "too few", 2, SHORT), store.get("too few"),
            attempt(fail_fast(store).barrier, "too few", 3), store.get("too few"),
            store.barrier("too few", 3))


@step
def a_barrier_at_no_number(store):
    clone = store.clone()
    set_for_all(store, "no barrier", "text")
    return attempt(clone.barrier, "no barrier", 2, seconds(20)), store.get("no barrier")


@step
def prefixed(store):
    outer = dist.PrefixStore("p", store)
    inner = dist.PrefixStore("p2", outer)
    outer.set("k", "outer")
    inner.set("k", "inner")
    inner.append("k", "!")
    outer.multi_set(["a", "b"], ["1", "2"])
    outer.queue_push("q", "m")
    return [outer.get("k"), inner.get("k"), store.get("p/k"), store.get("p/p2/k"),
            outer.multi_get(["b", "a"]), outer.compare_set("k", "outer", "new"), outer.add("n", 2),
            outer.check(["k", "a"]), outer.delete_key("a"), outer.queue_len("q"),
            store.queue_pop("p/q"), outer.num_keys() == store.num_keys(), sorted(outer.list_keys()),
            inner.list_keys(), outer.has_extended_api(), inner.underlying_store.get("p2/k"),
            attempt(outer.wait, ["no", "k"], SHORT), attempt(outer.queue_pop, "q", block=False),
            outer.clone().get("k"), inner.clone().get("k"), outer.barrier("b", 1),
            sorted(outer.list_keys())]


@step
def prefixes_of_odd_names(store):
    results = []
    for prefix in ("", "/", "a/b", "ü", "nul\0"):
        prefixed_store = dist.PrefixStore(prefix, store)
        prefixed_store.set("k", prefix)
        results.append((prefixed_store.get("k"), sorted(prefixed_store.list_keys()),
                        store.get(prefix + "/k"), prefixed_store.delete_key("k")))
    return results


@step
def prefixed_barriers(store):
    clone = dist.PrefixStore("p", store.clone())
    other = threading.Thread(target=clone.barrier, args=("b2", 2))
    other.start()
    dist.PrefixStore("p", store).barrier("b2", 2, seconds(20))
    other.join()
    return store.get("p/b2/num_members"), store.get("p/b2/last_member"), attempt(
        clone.barrier, "b3", 2, SHORT)


@step
def cloned(store):
    store.set_timeout(seconds(7))
    clone = store.clone()
    set_for_all(clone, "by clone", "v")
    fail_fast(clone)
    return (store.get("by clone"), clone.clone().get("by clone"), type(clone).__name__,
            clone.num_keys() == store.num_keys(), store.timeout, clone.timeout,
            attempt(clone.get, "missing"), clone.port == store.port, clone.host == store.host)


@step
def properties(store):
    return (store.has_extended_api(), store.libuvBackend, store.timeout,
            dist.PrefixStore("p", store).underlying_store.port == store.port)


@step
def timeouts(store):
    before = store.timeout
    store.set_timeout(seconds(0))
    results = [before, store.timeout, attempt(store.get, "missing")]
    store.set_timeout(seconds(0.0515))
    return results + [store.timeout, attempt(store.get, "missing")]


@step
def too_large(store):
    """Each closes the connection; the limits are PyTorch's."""
    many = ["k"] * 131_072
    results = [store.check(many), store.set("k", ""), store.check(many), store.wait(many)]
    for call in (lambda s: s.check(many + ["k"]), lambda s: s.wait(many + ["k"]),
                 lambda s: s.multi_get(many + ["k"]), lambda s: s.add("k" * 8192, 1),
                 lambda s: s.get("k" * 8192), lambda s: s.delete_key("k" * 8192),
                 lambda s: s.compare_set("k" * 8192, "", "x"), lambda s: s.queue_len("k" * 8192)):
        clone = store.clone()
        results.append((attempt(call, clone), attempt(clone.num_keys)))
    return results, store.delete_key("k")


@step
def keys_listed_and_counted(store):
    before = store.num_keys()
    store.set("one more", "")
    store.queue_push("no key", "")
    store.queue_pop("no key")
    return before, store.num_keys(), sorted(store.list_keys())


compare(STEPS, agents_server(), pytorchs_server())
