"""Eight processes on one store; the results are the same on both servers."""
import multiprocessing
import os

from side_by_side import Server, agents_server, pytorchs_server_process

PROCESSES = 8
ROUNDS = 40
fork = multiprocessing.get_context("fork")


def add(index, store):
    return [store.add("sum", index) is not None for _ in range(ROUNDS)]


def increment_by_compare_set(_, store):
    for _ in range(ROUNDS):
        while True:
            before = store.compare_set("cas", "", "0,0")
            mine = f"{int(before.split(b',')[0]) + 1},{os.getpid()}"
            if store.compare_set("cas", before, mine) == mine.encode():
                break


def pass_a_token_around(index, store):
    """Each process waits for its predecessor."""
    for i in range(ROUNDS):
        turn = i * PROCESSES + index
        if turn > 0:
            store.wait([f"turn {turn - 1}"])
        store.append("order", bytes([index]))
        store.check(["order"])  # waits until the append has been carried out
        store.set(f"turn {turn}", "")


def exchange(index, store):
    """The exchange when a group is created: each publishes, each reads all."""
    store.set(f"address/{index}", str(index) * 1000)
    addresses = store.multi_get([f"address/{other}" for other in range(PROCESSES)])
    assert addresses == [str(other).encode() * 1000 for other in range(PROCESSES)]
    store.barrier("exchanged", PROCESSES)
    return store.add("sum", 0)


def fill_and_drain(index, store):
    for i in range(ROUNDS):
        store.queue_push(f"queue {(index + i) % PROCESSES}", f"{index}/{i}")
    return sorted(store.queue_pop(f"queue {index}") for _ in range(ROUNDS))


def work(index, host, port, results):
    store = Server(host, port).open()
    results.put((index, [task(index, store) for task in (
        add, increment_by_compare_set, pass_a_token_around, fill_and_drain, exchange)]))


def final_state(store):
    state = {key: store.get(key) for key in store.list_keys()}
    state["cas"] = state["cas"].split(b",")[0]  # without the pid of the last process
    return state


def run(host, port):
    results = fork.SimpleQueue()
    workers = [fork.Process(target=work, args=(index, host, port, results))
               for index in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0, worker
    return sorted(results.get() for _ in workers)


with pytorchs_server_process() as theirs:
    servers = agents_server(), theirs
    outcomes = [run(server.host, server.port) for server in servers]
    states = [final_state(server.open()) for server in servers]
assert outcomes[0] == outcomes[1], outcomes
assert states[0] == states[1], states
assert states[0]["cas"] == str(PROCESSES * ROUNDS).encode()
assert states[0]["order"] == bytes(range(PROCESSES)) * ROUNDS
print("same", len(states[0]), "keys")
