"""Clients that harm a store server as they can, for store_vs_torch.py. Usage: store_hostile.py PORT

500 that send a byte now and then of a request that announces 64 MB, one that asks for 1 GB of
replies and reads none, and on and on others that announce 4 GiB or send garbage. Prints "ready"
when all are there, and goes on until its standard input ends.
"""

import random
import resource
import select
import socket
import struct
import sys

SLOW = 500
MEGABYTE = 1_000_000
PAUSE_SECONDS = 0.02
VALIDATE = b"\x00" + struct.pack("<I", 0x3C85F7CE)


def text(value):
    return struct.pack("<Q", len(value)) + value


def connect(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def slow_client(port):
    client = connect(port)
    client.sendall(VALIDATE + b"\x01" + text(b"/slow") + struct.pack("<Q", 64 * MEGABYTE))
    return client


def deaf_client(port):
    client = connect(port)
    client.sendall(VALIDATE + b"\x01" + text(b"/large") + text(bytes(MEGABYTE)))
    client.setblocking(False)
    requests = (b"\x03" + text(b"/large")) * 1000
    try:
        client.send(requests)
    except BlockingIOError:
        pass  # the server stops reading, as it should
    return client


def attack_once(port, bytes_to_send):
    with connect(port) as client:
        try:
            client.sendall(bytes_to_send)
        except OSError:
            pass  # closed by the server


def main():
    port = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    chance = random.Random(1)
    slow = [slow_client(port) for _ in range(SLOW)]
    deaf = deaf_client(port)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        for client in slow:
            client.send(b"x")
        attack_once(port, VALIDATE + b"\x01" + struct.pack("<Q", 1 << 32))
        attack_once(port, chance.randbytes(4096))
    deaf.close()


if __name__ == "__main__":
    main()
