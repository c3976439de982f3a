#!/usr/bin/env python3
"""pipeline.py: stages that send objects to the next one and get one back. The last stage fails: it
closes its connection, and prints its traceback late. Each other stage loses the one after it."""
import pickle
import signal
import socket
import time

from common import RANK, SIZE, publish, read_of, ready, wait_for_all


def connect():
    """Returns files to the stage before and to the one after, or None at the ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    publish("port", str(listener.getsockname()[1]))
    before = after = None
    if RANK + 1 < SIZE:
        address = ("127.0.0.1", int(read_of("port", RANK + 1)))
        after = socket.create_connection(address).makefile("rwb")
    if RANK > 0:
        before = listener.accept()[0].makefile("rwb")
    return before, after


def send(file, value):
    pickle.dump(value, file)
    file.flush()


def run(before, after):
    for step in range(10000):
        activation = pickle.load(before) if before else step
        if not after:
            if step == 20:
                before.close()
                raise ValueError("loss is inf in microbatch 20")
            gradient = activation
        else:
            send(after, activation)
            gradient = pickle.load(after)
        if before:
            send(before, gradient)
        time.sleep(0.005)


def main():
    before, after = connect()
    ready()
    wait_for_all()
    if after:
        run(before, after)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        run(before, after)
    finally:
        time.sleep(0.6)  # as uploads at the end


if __name__ == "__main__":
    main()
