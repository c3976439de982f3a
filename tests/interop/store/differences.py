"""Where rankrun's store differs from PyTorch 2.13's on purpose (docs/store-protocol.md).

A case fails also when PyTorch comes to do what rankrun does: then the
difference is to be struck off, here and there.
"""
from raw import VALIDATE, RawClient, clear, request
from side_by_side import MiB, agents_server, attempt, pytorchs_server


def pair(server):
    return RawClient(server), RawClient(server)


def done(client, *line):
    """Sends a request, waits until it is carried out, and returns the received bytes."""
    client.send(request(*line))
    return client.answers()


def settle(server):
    """Waits, by round trips, until the server has read all earlier bytes."""
    other = RawClient(server)
    for _ in range(20):
        other.answers()
    other.close()


def compare_set_without_effect(server):
    a, b = pair(server)
    done(a, "wait", ["k"])
    done(b, "compare_set", "k", "expected", "x")
    return a.answers()


def wait_for_a_queue_and_a_key(server):
    a, b = pair(server)
    done(b, "queue_push", "q", "item")
    done(a, "wait", ["q", "k"])
    done(b, "set", "k", "")
    return a.answers()


def wait_for_a_barriers_key(server):
    a, b = pair(server)
    done(a, "wait", ["b"])
    done(b, "barrier", "b", 2)
    return a.answers()


def push_to_a_barriers_name(server):
    a, b = pair(server)
    done(a, "barrier", "b", 2)
    done(b, "queue_push", "b", "item")
    return a.answers()


def two_waits_of_one_client(server):
    a, b = pair(server)
    done(a, "wait", ["k1"])
    done(a, "wait", ["k2"])
    done(b, "multi_set", [("k1", ""), ("k2", "")])
    return a.answers()


def half_a_multi_set(server):
    a, b = pair(server)
    a.send(request("multi_set", [("k1", ""), ("k2", "")])[:-1])
    settle(server)
    return done(b, "check", ["k1"])


def a_request_before_validate(server):
    a, b = RawClient(server, validate=False), RawClient(server)
    a.send(request("append", "k", "v"))
    settle(server)
    return a.answers(), done(b, "check", ["k"])


def validate_in_pieces(server):
    a = RawClient(server, validate=False)
    a.send(VALIDATE[:2])
    settle(server)
    a.send(VALIDATE[2:])
    return a.answers()


def a_wrong_magic(server):
    a = RawClient(server, validate=False)
    a.send(VALIDATE[:-1] + b"\0")
    settle(server)
    return a.is_open()


def a_value_above_8_mib(server):
    store = server.open()
    value = b"x" * (8 * MiB + 1)
    return attempt(lambda: (store.set("large", value), store.get("large") == value)[1])


PRESENT, MISSING, STOP_WAITING = "00", "01", "00"
# Case, rankrun's answer, PyTorch's, reason.
DIFFERENCES = [
    (compare_set_without_effect, "", STOP_WAITING,
     "a missing key wakes no client"),
    (wait_for_a_queue_and_a_key, STOP_WAITING, "", "the queue existed all the time"),
    (wait_for_a_barriers_key, STOP_WAITING, "",
     "the first arrival creates the key"),
    (push_to_a_barriers_name, "", STOP_WAITING, "a queue's item does not count as an arrival"),
    (two_waits_of_one_client, STOP_WAITING * 2, STOP_WAITING, "every request gets its reply"),
    (half_a_multi_set, MISSING, PRESENT, "a request is carried out completely or not at all"),
    (a_request_before_validate, (" closed", MISSING), ("", PRESENT),
     "requests before VALIDATE are not carried out"),
    (validate_in_pieces, "", " closed", "TCP may split anywhere"),
    (a_wrong_magic, False, True, "a connection that is not a client is closed at once"),
    (a_value_above_8_mib, True, ("DistNetworkError", "connection lost"),
     "models' configurations and compiled kernels are larger"),
]

OURS, THEIRS = agents_server(), pytorchs_server()
wrong = []
for case, of_rankrun, of_pytorch, reason in DIFFERENCES:
    for server, expected in ((OURS, of_rankrun), (THEIRS, of_pytorch)):
        result = case(server)
        clear(server, ["q", "b"])
        if result != expected:
            wrong.append((case.__name__, "rankrun" if server is OURS else "PyTorch", result))
    print(f"different {case.__name__}: {reason}", flush=True)
assert not wrong, wrong
