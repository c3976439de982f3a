"""rankctl store against rankrun's server and both of PyTorch's.

rankctl.py RANKCTL: each command runs on a server of each kind; exit code,
output and message must be equal. What rankctl sets, PyTorch's client must see,
and the other way round.
"""
import datetime
import json
import os
import re
import subprocess
import sys

import torch.distributed as dist

RANKCTL = sys.argv[1]
SECONDS_30 = datetime.timedelta(seconds=30)
BINARY = bytes(range(256))


def start(address, arguments, **pipes):
    environment = dict(os.environ, RANKRUN_STORE=address)
    return subprocess.Popen([RANKCTL, "store", *arguments], env=environment,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process, stdin=b""):
    out, err = process.communicate(stdin, timeout=60)
    err = re.sub(rb"127\.0\.0\.1:\d+", b"ADDRESS", err)
    return process.returncode, out, err


def ctl(address, *arguments, stdin=b""):
    return finish(start(address, arguments), stdin)


def single_commands(address, store):
    """Runs each of `arguments, stdin` in this order."""
    del store
    return [ctl(address, *arguments, stdin=stdin) for arguments, stdin in [
        (["get", "--now", "k"], b""),
        (["get", "--timeout", "0.05", "k"], b""),
        (["set", "k", "-"], BINARY),
        (["get", "k"], b""),
        (["get", "--now", "k"], b""),
        (["set", "empty", ""], b""),
        (["get", "empty"], b""),
        (["set", "large", "-"], b"x" * (1 << 20)),
        (["get", "large"], b""),
        (["set", "--if", "", "c", "1"], b""),
        (["set", "--if", "1", "c", "2"], b""),
        (["set", "--if", "1", "c", "3"], b""),
        (["set", "--if", "x", "none", "y"], b""),
        (["set", "--if", "x", "none", "x"], b""),
        (["get", "c"], b""),
        (["add", "n"], b""),
        (["add", "n", "-5"], b""),
        (["add", "n", "0"], b""),
        (["add", "empty"], b""),
        (["set", "text", "no number"], b""),
        (["add", "text", "1"], b""),
        (["wait", "k", "n", "c"], b""),
        (["wait", "--timeout", "0.05", "k", "missing", "m2"], b""),
        (["set", "--prefix", "p", "k", "prefixed"], b""),
        (["get", "p/k"], b""),
        (["get", "--raw", "/p/k"], b""),
        (["get", "--raw", "--now", "p/k"], b""),
        (["set", "--raw", "raw", "bare"], b""),
        (["get", "--now", "raw"], b""),
        (["del", "--raw", "raw"], b""),
        (["list"], b""),
        (["list", "--prefix", "p"], b""),
        (["list", "c*"], b""),
        (["list", "--values", "[kn]"], b""),
        (["list", "--values", "--json"], b""),
        (["list", "--raw", "/p*"], b""),
        (["del", "large", "missing", "k"], b""),
        (["list"], b""),
    ]]


def seen_by_pytorch(address, store):
    ctl(address, "set", "from rankctl", "-", stdin=BINARY)
    ctl(address, "add", "both", "2")
    ctl(address, "set", "--prefix", "inner", "k", "v")
    return [store.get("from rankctl") == BINARY, store.add("both", 40),
            dist.PrefixStore("inner", store).get("k"), store.check(["from rankctl"])]


def seen_by_rankctl(address, store):
    store.set("from pytorch", BINARY)
    dist.PrefixStore("outer", dist.PrefixStore("in", store)).set("k", "v")
    return [ctl(address, "get", "from pytorch"), ctl(address, "get", "in/outer/k"),
            ctl(address, "get", "--prefix", "in", "outer/k"), ctl(address, "add", "both", "-2")]


def waits_end(address, store):
    waiting = start(address, ["wait", "comes", "comes too"])
    getting = start(address, ["get", "comes too"])
    store.set("comes", "")
    store.set("comes too", "v")
    return [finish(waiting), finish(getting)]


def lines_until(process, count):
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def watched(address, store):
    watch = start(address, ["watch", "--json", "--interval", "0.01", "watched"])
    store.set("watched", "1")
    events = lines_until(watch, 1)
    store.set("watched", "2")
    events += lines_until(watch, 1)
    store.delete_key("watched")
    events += lines_until(watch, 1)
    watch.terminate()
    watch.communicate(timeout=60)
    for event in events:
        del event["time"]
        # The watch may have read the key before or after the first value was
        # set.
        event["event"] = event["event"].replace("is", "set")
    return events


STEPS = [single_commands, seen_by_pytorch, seen_by_rankctl, waits_end, watched]


def check_stats(address, of_rankrun):
    code, out, err = ctl(address, "stats", "--json")
    assert (code, err) == (0, b""), (code, err)
    stats = json.loads(out)
    names = ctl(address, "list", "--raw")[1].decode().splitlines()
    assert stats["keys"] == len(names), (stats, names)
    assert (stats["server"] is not None) == of_rankrun, stats
    if not of_rankrun:
        values = [ctl(address, "get", "--raw", name)[1] for name in names]
        assert stats["bytes"] == sum(map(len, names)) + sum(map(len, values)), (stats, names)


served = subprocess.Popen([RANKCTL, "store", "serve", "--port", "0"], stdout=subprocess.PIPE)
address = served.stdout.readline().decode().split()[-1]
host, port = address.rsplit(":", 1)
try:
    servers = {"rankrun": dist.TCPStore(host, int(port), is_master=False, timeout=SECONDS_30)}
    for name, use_libuv in (("libuv", True), ("legacy", False)):
        servers[name] = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=SECONDS_30,
                                      wait_for_workers=False, use_libuv=use_libuv)
    for step in STEPS:
        results = {name: step(f"127.0.0.1:{store.port}", store) for name, store in servers.items()}
        print(step.__name__)
        for name, result in results.items():
            for i, (ours, theirs) in enumerate(zip(results["rankrun"], result, strict=True)):
                assert ours == theirs, (step.__name__, i, name, str(ours)[:300], str(theirs)[:300])
    for name, store in servers.items():
        check_stats(f"127.0.0.1:{store.port}", name == "rankrun")
finally:
    served.terminate()
    served.wait(timeout=30)
