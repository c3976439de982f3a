"""Times connections of this host to the store of a job: one after the other, then many at once.
Usage: connections.py COUNT RESULT, in a worker on another node than the store's.
"""
import os
import selectors
import socket
import statistics
import sys
import time

# VALIDATE with its number, and a PING, which the store answers with the same four bytes.
HELLO = bytes.fromhex("00cef7853c") + b"\x0dabcd"
ANSWER = b"abcd"


def greet(address):
    begin = time.perf_counter()
    with socket.create_connection(address) as client:
        client.sendall(HELLO)
        if client.recv(len(ANSWER)) != ANSWER:
            sys.exit("the store has closed a connection")
        return time.perf_counter() - begin


def greet_together(address, count):
    """Returns the time in which all of `count` connections get their answer."""
    begin = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            client = socket.create_connection(address)
            client.sendall(HELLO)
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.fileobj.recv(len(ANSWER)) != ANSWER:
                    sys.exit("the store has closed a connection")
                selector.unregister(key.fileobj)
                key.fileobj.close()
    return time.perf_counter() - begin


def main():
    count, result = int(sys.argv[1]), sys.argv[2]
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    times = [greet(address) for _ in range(count)]
    together = min(greet_together(address, count) for _ in range(3))
    with open(result, "w", encoding="utf-8") as file:
        file.write(f"{statistics.median(times) * 1e6:.0f} {together * 1e3:.1f}\n")


if __name__ == "__main__":
    main()
