"""Requests as bytes: cases that no client of PyTorch's makes, or not in this order.

A script is a list of (client, operation, fields...). After each line every
client's answers are collected; both servers must have sent the same.
"""
import random

from raw import RawClient, clear, request
from side_by_side import agents_server, pytorchs_server

OURS, THEIRS = agents_server(), pytorchs_server()
BIG = 2**63 - 1

SCRIPTS = {
    "a wait ends when the last key comes": [
        ("a", "wait", ["k1", "k2", "k1"]), ("b", "set", "k1", ""), ("b", "set", "k2", "")],
    "a key that came and went counts as seen": [
        ("a", "wait", ["k1", "k2"]), ("b", "set", "k1", ""), ("b", "delete_key", "k1"),
        ("b", "set", "k2", ""), ("a", "check", ["k1"])],
    "requests are answered while a wait is pending": [
        ("a", "wait", ["k"]), ("a", "set", "other", "v"), ("a", "get", "other"), ("a", "num_keys"),
        ("a", "set", "k", ""), ("a", "get", "k")],
    "a wait for nothing is over": [("a", "wait", []), ("a", "check", []), ("a", "multi_get", [])],
    "every cancel is answered once": [
        ("a", "cancel_wait"), ("a", "wait", ["k"]), ("a", "cancel_wait"), ("a", "cancel_wait"),
        ("b", "set", "k", ""), ("a", "wait", ["k"]), ("a", "cancel_wait")],
    "each creation wakes": [
        line for name, fields in {
            "set": ("v",), "add": (0,), "append": ("",), "compare_set": ("", "v"),
            "queue_push": ("v",), "barrier": (1,)}.items()
        for line in [("a", "wait", [name]), ("b", name, name, *fields)]],
    "changes and deletions wake nobody": [
        ("b", "set", "k", "v"), ("a", "wait", ["k", "other"]), ("b", "set", "k", "w"),
        ("b", "add", "n", 1), ("b", "delete_key", "k"), ("b", "delete_key", "other"),
        ("b", "queue_pop", "other"), ("b", "queue_len", "other"), ("b", "set", "other", "")],
    "an empty queue is no key": [
        ("a", "queue_push", "q", "1"), ("a", "queue_pop", "q"), ("a", "check", ["q"]),
        ("a", "wait", ["q"]), ("b", "queue_push", "q", "2"), ("b", "queue_pop", "q"),
        ("b", "queue_pop", "q"), ("a", "queue_len", "q"), ("a", "num_keys"), ("a", "list_keys")],
    "a queue's push wakes one": [
        ("a", "wait", ["q"]), ("b", "wait", ["q"]), ("c", "queue_push", "q", "1"),
        ("c", "queue_push", "q", "2"), ("a", "queue_pop", "q"), ("b", "queue_pop", "q")],
    "a queue's name is none of a value": [
        ("a", "queue_push", "q", "item"), ("a", "get", "q"), ("a", "delete_key", "q"),
        ("a", "set", "q", "value"), ("a", "get", "q"), ("a", "multi_get", ["q", "q"]),
        ("a", "delete_key", "q"), ("a", "queue_pop", "q")],
    "missing keys are empty values": [
        ("a", "get", "k"), ("a", "multi_get", ["k", "", "k"]), ("a", "check", ["k"])],
    "compare and set": [
        ("a", "compare_set", "k", "no", "v"), ("a", "compare_set", "k", "", ""),
        ("a", "compare_set", "k", "", "v"), ("a", "compare_set", "k", "", "w"),
        ("a", "compare_set", "k", "v", "v"), ("a", "compare_set", "k", "v", ""), ("a", "num_keys")],
    "sums wrap": [
        ("a", "add", "n", BIG), ("a", "add", "n", 1), ("a", "get", "n"), ("a", "add", "n", -1),
        ("a", "add", "m", -BIG - 1), ("a", "add", "m", -BIG - 1), ("a", "get", "m")],
    "no number closes and changes nothing": [
        ("b", "set", "k", "text"), ("a", "add", "k", 1), ("b", "get", "k"),
        ("b", "barrier", "k", 2), ("c", "get", "k")],
    "a barrier releases all": [
        ("a", "barrier", "b", 3), ("b", "barrier", "b", 3), ("a", "num_keys"),
        ("c", "barrier", "b", 3), ("a", "get", "b"), ("b", "barrier", "b", 3), ("a", "get", "b")],
    "barriers of odd sizes": [
        ("a", "barrier", "b1", 1), ("a", "barrier", "b0", 0), ("a", "barrier", "b-", -BIG - 1),
        ("a", "num_keys"), ("a", "get", "b-")],
    "a canceled barrier has been counted": [
        ("a", "barrier", "b", 2), ("a", "cancel_wait"), ("a", "get", "b"),
        ("b", "barrier", "b", 2)],
    "a barrier of one whose client has left": [
        ("a", "barrier", "b", 3), ("a", "close"), ("b", "barrier", "b", 3),
        ("c", "barrier", "b", 3)],
    "other writes release a barrier": [
        ("a", "barrier", "b", 9), ("b", "set", "b", "text"), ("a", "barrier", "n", 9),
        ("b", "add", "n", 1), ("a", "get", "n"), ("a", "barrier", "p", 9),
        ("b", "append", "p", "0"), ("a", "get", "p")],
    "waits of a client that has left": [
        ("a", "wait", ["k"]), ("b", "wait", ["k"]), ("a", "close"), ("c", "set", "k", ""),
        ("c", "num_keys")],
    "names of any bytes": [
        ("a", "set", b"\0\xff" * 100, b"\xff\0" * 100), ("a", "get", b"\0\xff" * 100),
        ("a", "set", "", "empty"), ("a", "get", ""), ("a", "num_keys")],
    "one key is listed": [("a", "list_keys"), ("b", "set", "k", ""), ("b", "queue_push", "q", ""),
                          ("a", "list_keys")],
    "the last of equal keys": [
        ("a", "wait", ["k"]), ("b", "multi_set", [("k", "1"), ("k", "2")]), ("a", "get", "k")],
    "what is no operation closes": [
        ("a", bytes([19])), ("b", bytes([255])), ("c", bytes([0])), ("a", "num_keys")],
    "the largest that is allowed": [
        ("a", "set", "k" * 8192, "v"), ("a", "get", "k" * 8192), ("a", "check", ["k"] * 131_072),
        ("a", "add", "k" * 8193, 1), ("b", "check", ["k"] * 131_073), ("c", "num_keys")],
}


def send(client, operation, *fields):
    if operation == "close":
        client.close()
    elif isinstance(operation, bytes):
        client.send(operation)
    else:
        client.send(request(operation, *fields))


def transcript(server, lines):
    """Returns the bytes that every client has received after each line."""
    clients = {name: RawClient(server) for name in "abc"}
    answers = [{name: client.answers() for name, client in clients.items()}]
    for name, operation, *fields in lines:
        send(clients[name], operation, *fields)
        if operation == "close":
            del clients[name]
        # First the client of the line, because its request has then been
        # carried out.
        order = sorted(clients, key=lambda other: other != name)
        answers.append({other: clients[other].answers() for other in order})
    for client in clients.values():
        client.close()
    clear(server, {fields[0] for _, operation, *fields in lines if operation == "queue_push"})
    return answers


def random_lines(seed, count):
    """Requests of all kinds on few names, but for what differs on purpose.

    So names of values, queues and barriers stay apart, a WAIT is for values or
    for one queue, a client has one WAIT or BARRIER at a time, and COMPARE_SET
    expects nothing where it may find nothing.
    """
    choose = random.Random(seed)
    keys, queues = [f"k{i}" for i in range(5)], ["q0", "q1"]
    texts = ["", "1", "-20", "x" * 300, b"\0\xff"]

    def some(of):
        return [choose.choice(of) for _ in range(choose.randrange(4))]

    def line():
        key, queue, text = choose.choice(keys), choose.choice(queues), choose.choice(texts)
        return choose.choice([
            ("set", key, text), ("set", key, text), ("append", key, text), ("get", key),
            ("compare_set", key, "", text), ("add", "n", choose.randrange(-5, 5)),
            ("delete_key", key), ("delete_key", key), ("delete_key", "n"), ("delete_key", queue),
            ("check", some(keys + queues)), ("wait", some(keys)), ("wait", [queue]),
            ("wait", some(keys + ["n"])), ("cancel_wait",), ("multi_get", some(keys + queues)),
            ("multi_set", [(name, text) for name in some(keys)]), ("num_keys",),
            ("queue_push", queue, text), ("queue_push", queue, text), ("queue_pop", queue),
            ("queue_len", queue), ("barrier", choose.choice(["b0", "b1"]), choose.randrange(4)),
            ("delete_key", "b0"), ("get", "b1")])

    lines = []
    while len(lines) < count:
        client, request_line = choose.choice("abc"), line()
        if request_line[0] in ("wait", "barrier"):
            lines.append((client, "cancel_wait"))
        lines.append((client, *request_line))
    return lines


def compare(name, lines):
    ours, theirs = transcript(OURS, lines), transcript(THEIRS, lines)
    print("same" if ours == theirs else "DIFFERENT", name, flush=True)
    for line, result, expected in zip([("a", "connect")] + lines, ours, theirs):
        if result != expected:
            print(f"  at {str(line)[:500]}\n  rankrun: {result}\n  PyTorch: {expected}"[:3000])
            break
    return ours == theirs


scripts = SCRIPTS | {f"random requests {seed}": random_lines(seed, 300) for seed in range(20)}
different = [name for name, lines in scripts.items() if not compare(name, lines)]
assert not different, different
