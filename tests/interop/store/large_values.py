"""Values above PyTorch's 8 MiB, up to rankrun's 64: its own client copes with them."""
import os

from side_by_side import MiB, agents_server, attempt, seconds

LARGEST = 64 * MiB
server = agents_server()
store = server.open(seconds(120))
other = server.open(seconds(120))

value = os.urandom(MiB) * 64
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
