"""Strangers at the port of a job, for hostile.py. Usage: hostile_attack.py KIND PORT

500 connections of one kind. One that the job closes comes back after a second. Prints "ready" when
all have been there, and goes on until its standard input ends.
"""

import heapq
import os
import resource
import select
import socket
import sys
import time

STRANGERS = 500
REDIAL_SECONDS = 1.0
SLOW_SECONDS = 0.1
PREAMBLE = b"RKRN\r\n\x00\x00"
VERSION = b"\x02"


def cbor(major, size):
    return bytes([major << 5 | size]) if size < 24 else bytes([major << 5 | 24, size])


def hello():
    """The frame of a node that does not know the secret."""
    fields = {b"job": b"job", b"nonce": os.urandom(32), b"key": os.urandom(32),
              b"stream": os.urandom(24), b"payload": b"hello", b"proof": os.urandom(32)}
    body = cbor(5, len(fields))
    for name, value in fields.items():
        body += cbor(3, len(name)) + name + cbor(2, len(value)) + value
    return len(body).to_bytes(4, "little") + body


FIRST_BYTES = {
    "silent": lambda: b"",
    "slow": lambda: PREAMBLE[:1],
    "garbage": lambda: os.urandom(64),
    "wrong secret": lambda: PREAMBLE + VERSION + hello(),
    "wrong version": lambda: PREAMBLE + b"\x07",
}


class Attack:
    def __init__(self, kind, port):
        self.kind, self.port = kind, port
        self.poll = select.poll()
        self.clients = {}  # by descriptor: socket, bytes that it has sent
        self.due = [(0.0, "dial", i) for i in range(STRANGERS)]
        self.dials = 0

    def dial(self, _):
        try:
            client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            first = FIRST_BYTES[self.kind]()
            client.sendall(first)
        except OSError:
            return self.later(REDIAL_SECONDS, "dial", 0)
        self.dials += 1
        client.setblocking(False)
        self.clients[client.fileno()] = [client, len(first)]
        self.poll.register(client, select.POLLIN | select.POLLHUP)
        if self.kind == "slow":
            self.later(SLOW_SECONDS, "send", client.fileno())

    def send(self, fd):
        """The next byte of a slow stranger."""
        if fd not in self.clients:
            return
        client, sent = self.clients[fd]
        try:
            client.send(PREAMBLE[sent % 8:sent % 8 + 1])
        except OSError:
            return  # poll reports it
        self.clients[fd][1] += 1
        self.later(SLOW_SECONDS, "send", fd)

    def later(self, seconds, action, argument):
        heapq.heappush(self.due, (time.monotonic() + seconds, action, argument))

    def receive(self, fd):
        client = self.clients[fd][0]
        try:
            if client.recv(4096):
                return
        except OSError:
            pass
        self.poll.unregister(fd)
        del self.clients[fd]
        client.close()
        self.later(REDIAL_SECONDS, "dial", 0)

    def run(self):
        self.poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        is_ready = False
        while True:
            while self.due and self.due[0][0] <= time.monotonic():
                _, action, argument = heapq.heappop(self.due)
                getattr(self, action)(argument)
            if not is_ready and self.dials >= STRANGERS:
                is_ready = True
                print("ready", flush=True)
            for fd, _ in self.poll.poll(10):
                if fd == sys.stdin.fileno():
                    return
                if fd in self.clients:
                    self.receive(fd)


resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
Attack(sys.argv[1], int(sys.argv[2])).run()
