"""PyTorch's own TCPStore client against the agent's store."""
import datetime
import os

import torch.distributed as dist

store = dist.TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world_size=2, is_master=False,
    timeout=datetime.timedelta(seconds=30))
rank = int(os.environ["RANK"])

store.set(f"key{rank}", f"value{rank}")
assert store.get(f"key{1 - rank}") == f"value{1 - rank}".encode()
assert store.add("counter", 5) in (5, 10)
store.wait(["key0", "key1", "counter"])
assert store.check(["key0", "key1"]) and not store.check(["key0", "absent"])

if rank == 0:
    assert store.compare_set("cs", "", "first") == b"first"
    assert store.compare_set("cs", "wrong", "second") == b"first"
    assert store.compare_set("cs", "first", "second") == b"second"
    assert store.compare_set("none", "expected", "x") == b"expected"
    assert store.delete_key("cs") and not store.delete_key("cs")
    store.set("empty", b"")
    assert store.get("empty") == b""
    big = bytes(range(256)) * 4096  # 1 MiB with NUL bytes
    store.set("big", big)
    assert store.get("big") == big
    try:
        store.wait(["never"], datetime.timedelta(milliseconds=50))
        raise SystemExit("a wait for a missing key came back")
    except dist.DistStoreError as error:
        assert "never" in str(error), error
    assert store.get("key1") == b"value1"  # the client is still in step
    store.set("done", "")
store.wait(["done"])
