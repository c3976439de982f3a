"""Sixteen threads, on one client each or all on one, on both servers."""
import threading
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist
from side_by_side import STEPS, agents_server, attempt, compare, pytorchs_server, seconds, step
from torch.distributed.elastic.utils import store as elastic

THREADS = 16
ROUNDS = 50


def together(work, stores):
    """Runs work(index, store) in a thread per store and returns the results in order."""
    with ThreadPoolExecutor(len(stores)) as threads:
        return list(threads.map(work, range(len(stores)), stores))


def clones(store):
    return [store.clone() for _ in range(THREADS)]


def busy(index, store):
    """Operations whose results do not depend on the other threads."""
    results = []
    for i in range(ROUNDS):
        key = f"{index}/{i}"
        store.set(key, str(i))
        store.append(key, "!")
        results.append((store.get(key), store.compare_set(key, f"{i}!", "done"), store.check([key]),
                        store.multi_get([key, key]), store.delete_key(key)))
        store.add("sum", index)
    return results


@step
def own_keys_by_clones(store):
    return together(busy, clones(store)), store.add("sum", 0)


@step
def own_keys_by_one_client(store):
    return together(busy, [store] * THREADS), store.add("sum", 0)


@step
def own_keys_by_prefix(store):
    stores = [dist.PrefixStore(f"thread {i}", clone) for i, clone in enumerate(clones(store))]
    return together(busy, stores), [each.add("sum", 0) for each in stores]


@step
def every_thread_gets_numbers_of_its_own(store):
    numbers = together(lambda _, clone: [clone.add("n", 1) for _ in range(ROUNDS)], clones(store))
    return sorted(sum(numbers, [])) == list(range(1, THREADS * ROUNDS + 1)), store.get("n")


@step
def compare_set_lets_one_win(store):
    def increment(_, clone):
        for _ in range(ROUNDS // 5):
            while True:
                before = clone.compare_set("cas", "", "0")
                mine = f"{int(before.split(b',')[0]) + 1},{threading.get_ident()}"
                if clone.compare_set("cas", before, mine) == mine.encode():
                    break
    together(increment, clones(store))
    return store.get("cas").split(b",")[0]


@step
def each_waits_for_all_others(store):
    def meet(index, clone):
        for i in range(ROUNDS):
            clone.set(f"round {i}/{index}", str(index))
            clone.wait([f"round {i}/{other}" for other in range(THREADS)])
        return clone.multi_get([f"round {ROUNDS - 1}/{other}" for other in range(THREADS)])
    return together(meet, clones(store))


@step
def barriers_in_a_row(store):
    def meet(_, clone):
        seen = []
        for i in range(ROUNDS):
            clone.add(f"arrived {i}", 1)
            clone.barrier(f"barrier {i}", THREADS, seconds(30))
            seen.append(clone.add(f"arrived {i}", 0))
        return seen
    return together(meet, clones(store))


@step
def every_item_is_popped_once(store):
    def work(index, clone):
        if index % 2:
            for i in range(ROUNDS):
                clone.queue_push("q", f"{index}/{i}")
            return []
        popped = []
        while len(popped) < ROUNDS:
            try:
                popped.append(clone.queue_pop("q"))
            except dist.QueueEmptyError:
                pass  # another thread popped first
        return popped
    return sorted(sum(together(work, clones(store)), [])), store.queue_len("q")


@step
def elastic_synchronizes(store):
    def meet(index, clone):
        data = elastic.synchronize(clone, str(index).encode(), index, THREADS, "sync", timeout=30)
        elastic.barrier(clone, THREADS, "elastic barrier", barrier_timeout=30, rank=index)
        return data
    return together(meet, clones(store))


@step
def timeouts_of_many(store):
    def give_up(index, clone):
        results = []
        for i in range(5):
            results.append(attempt(clone.wait, [f"never {index}"], seconds(0.005)))
            results.append(attempt(clone.barrier, f"never all {index}", 9, seconds(0.005)))
            results.append(clone.add(f"in step {index}", i))
        return results
    return together(give_up, clones(store))


compare(STEPS, agents_server(), pytorchs_server())
