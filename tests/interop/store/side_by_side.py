"""Runs the same calls on the agent's store and on PyTorch's server, and compares the results."""
import contextlib
import datetime
import multiprocessing
import os
import re

import torch.distributed as dist

MiB = 1 << 20
STEPS = []


def step(function):
    """Decorator that adds a function of a store to STEPS."""
    STEPS.append(function)
    return function


def seconds(count):
    return datetime.timedelta(seconds=count)


class Server:
    """A store server that clients can connect to."""

    def __init__(self, host, port, owner=None):
        self.host, self.port, self._owner = host, port, owner

    def open(self, timeout=seconds(30)):
        return dist.TCPStore(self.host, self.port, is_master=False, timeout=timeout)


def agents_server():
    return Server(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def pytorchs_server():
    owner = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return Server("127.0.0.1", owner.port, owner)


def _serve(port, end):
    server = pytorchs_server()
    port.put(server.port)
    end.wait()


@contextlib.contextmanager
def pytorchs_server_process():
    """Runs the server in its own process. This process is forked, so it must have no store."""
    fork = multiprocessing.get_context("fork")
    port, end = fork.SimpleQueue(), fork.Event()
    process = fork.Process(target=_serve, args=(port, end), daemon=True)
    process.start()
    try:
        yield Server("127.0.0.1", port.get())
    finally:
        end.set()
        process.join(60)


def raised(error):
    """Returns type and text of an exception, without the parts that differ between runs."""
    text = str(error).split("\nException raised from")[0].split("\nInvoked with:")[0]
    # The text depends on how much the server had read when it closed.
    if re.search("got 0 bytes|Connection reset by peer|Broken pipe", text):
        text = "connection lost"
    return type(error).__name__, text


def attempt(call, *arguments, **named):
    """Returns the result or the exception of a call."""
    try:
        return call(*arguments, **named)
    except Exception as error:  # any exception is a result here
        return raised(error)


def compare(steps, ours, theirs):
    """Runs each step with its own client; the results must be equal."""
    different = []
    for each in steps:
        result, expected = each(ours.open()), each(theirs.open())
        print("same" if result == expected else "DIFFERENT", each.__name__, flush=True)
        if result != expected:
            different.append(each.__name__)
            print(f"  rankrun: {str(result)[:2000]}\n  PyTorch: {str(expected)[:2000]}", flush=True)
    assert not different, different
