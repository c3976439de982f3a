#!/usr/bin/env python3
"""raises.py RANK WAY: rank RANK fails as Python programs do. The others wait."""
import atexit
import os
import signal
import sys
import threading
import time

from common import RANK, ready, wait_for_all, wait_long

culprit, way = int(sys.argv[1]), sys.argv[2]


def read_config():
    return {"layers": 4}["heads"]


def chained():
    try:
        read_config()
    except KeyError as error:
        raise RuntimeError("the model cannot be built") from error


def in_cleanup():
    """A second exception while the first one is handled: the first is the reason."""
    try:
        raise ValueError("loss is nan at step 3")
    finally:
        raise OSError("cannot close the log")


def in_thread():
    def load():
        raise IndexError("shard 9 of 8")

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    os._exit(6)


def at_exit():
    def check():
        print("Traceback (most recent call last):", file=sys.stderr)
        print("RuntimeError: the result is not finite", file=sys.stderr, flush=True)
        os._exit(1)

    atexit.register(check)
    sys.exit(0)


def recurse(depth=0):
    return recurse(depth + 1) + 1


def too_much():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    return bytearray(1 << 32)


def disk_full():
    with open("/dev/full", "w") as file:
        file.write("checkpoint")


def group():
    raise ExceptionGroup("two loaders", [ValueError("first"), TypeError("second")])


def logged():
    print("Connection refused, trying again", file=sys.stderr, flush=True)
    raise ValueError("batch size 0")


def multi_line():
    raise AssertionError("shapes differ:\n  expected (4, 8)\n  got (4, 9)")


WAYS = {
    "plain": lambda: {}["weights"],
    "chained": chained,
    "cleanup": in_cleanup,
    "thread": in_thread,
    "atexit": at_exit,
    "exit-text": lambda: sys.exit("no GPU is free"),
    "exit-number": lambda: sys.exit(42),
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt()),
    "sigint": lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5)),
    "memory": too_much,
    "import": lambda: __import__("no_such_module_anywhere"),
    "recursion": recurse,
    "disk": disk_full,
    "group": group,
    "logged": logged,
    "lines": multi_line,
    "assertion": lambda: (_ for _ in ()).throw(AssertionError()),
    "faulthandler": lambda: (__import__("faulthandler").enable(),
                             __import__("ctypes").string_at(16)),
    "stdout": lambda: (print("fatal: the tokenizer has no file", flush=True), os._exit(4)),
    "no-newline": lambda: (sys.stderr.write("fatal: license expired"), sys.stderr.flush(),
                           os._exit(5)),
    "long": lambda: (sys.stderr.write("x" * 200000 + "\n"), sys.exit("after a long line")),
    "non-utf8": lambda: (os.write(2, b"\xff\xfe broken \x1b[31mred\x1b[0m\n"), sys.exit(3)),
    "ctrl": lambda: (os.write(2, b"progress 1\rprogress 2\rfatal: out of tokens\n"), sys.exit(3)),
}

if __name__ == "__main__":
    # A victim that is stopped in the middle of something, and says so.
    def interrupted(_signal, _frame):
        raise RuntimeError("interrupted while the checkpoint was written")

    if len(sys.argv) > 3 and sys.argv[3] == "handlers" and RANK != culprit:
        signal.signal(signal.SIGTERM, interrupted)
    if len(sys.argv) > 3 and sys.argv[3] == "noisy":
        print("WARNING: Connection refused, trying again", file=sys.stderr, flush=True)
    ready()
    wait_for_all()
    if RANK == culprit:
        WAYS[way]()
    else:
        wait_long()
