"""Values above PyTorch's 8 MiB, up to rankrun's limit: its own client copes with them.

Usage: large_values.py MIB
"""
import os
import sys

from side_by_side import MiB, agents_server, attempt, seconds

LARGEST = int(sys.argv[1]) * MiB
server = agents_server()
store = server.open(seconds(120))
other = server.open(seconds(120))

value = os.urandom(MiB) * (LARGEST // MiB)
store.set("large", value)
assert other.get("large") == value
assert other.compare_set("large", "no", "x") == value
assert other.compare_set("created", "", value) == value
store.queue_push("queue", value)
assert other.queue_pop("queue") == value
store.multi_set(["m1", "m2"], [value, value[:1]])
assert other.multi_get(["m1", "m2"]) == [value, value[:1]]
store.append("m1", b"!")
assert other.get("m1") == value + b"!"

LOST = ("DistNetworkError", "connection lost")
assert attempt(lambda: (other.set("too large", value + b"!"), other.num_keys())) == LOST
assert not store.check(["too large"])
assert store.get("large") == value
