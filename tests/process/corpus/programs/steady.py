#!/usr/bin/env python3
"""steady.py RANK WAY: slow jobs in which nothing is wrong: each step takes rank RANK a second, by WAY,
for which it needs hardly any time of the processor. The others wait for it."""
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from common import FOLDER, RANK, SIZE, publish, read_of, ready, wait_for_all
from mesh import mesh

culprit, way = int(sys.argv[1]), sys.argv[2]
is_slow = RANK == culprit
STEPS = 6


def pass_on(peers, byte=b"x"):
    """One byte goes around, through all ranks."""
    if RANK > 0:
        byte = peers[RANK - 1].recv(1)
    peers[(RANK + 1) % SIZE].sendall(byte)
    if RANK == 0:
        byte = peers[SIZE - 1].recv(1)
    if byte != b"x":
        raise SystemExit(f"rank {RANK} has got {byte}")


def sockets():
    peers = mesh()
    for _ in range(STEPS):
        if is_slow:
            time.sleep(1)
        pass_on(peers)


def logs():
    """No rank needs another one; each says how far it is."""
    for step in range(STEPS):
        time.sleep(1)
        print(f"step {step}", flush=True)


def compute():
    """A process below the rank computes."""
    peers = mesh()
    if is_slow:
        subprocess.run([sys.executable, "-c", "import time\nend = time.monotonic() + 6\n"
                        "while time.monotonic() < end: sum(range(1000))"], check=True)
    pass_on(peers)


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(STEPS * 10000))
        self.end_headers()
        for _ in range(STEPS):
            time.sleep(1)
            self.wfile.write(bytes(10000))

    def log_message(self, *_):
        pass


def serve():
    server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
    publish("weights", str(server.server_port))
    server.handle_request()


def download():
    """A thread reads from a slow server, which is another process, and then the file is for all."""
    peers = mesh()
    if is_slow:
        if os.fork() == 0:
            serve()
            os._exit(0)
        url = f"http://127.0.0.1:{read_of('weights', RANK)}"
        thread = threading.Thread(target=lambda: urllib.request.urlopen(url).read())
        thread.start()
        thread.join()
        os.wait()
    pass_on(peers)


def ask():
    """A helper answers once a second, over a socket without an address."""
    peers = mesh()
    if is_slow:
        here, there = socket.socketpair()
        if os.fork() == 0:
            for _ in range(STEPS):
                time.sleep(1)
                there.sendall(b"x")
            os._exit(0)
        for _ in range(STEPS):
            here.recv(1)
        os.wait()
    pass_on(peers)


def load():
    """A file grows slowly, and the rank sleeps until the next part is there."""
    peers = mesh()
    path = os.path.join(FOLDER, f"part.{RANK}")
    for step in range(STEPS if is_slow else 0):
        with open(path, "wb") as file:
            file.write(bytes(100))
        time.sleep(1)
    pass_on(peers)


def store():
    """The ranks take turns by the keys of the store of PyTorch, and have nothing else."""
    import torch.distributed as dist  # takes seconds
    keys = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SIZE, False)
    publish("imported", "")
    for rank in range(SIZE):
        read_of("imported", rank, 60.0)
    for step in range(STEPS):
        if is_slow:
            time.sleep(1)
            keys.set(f"step {step}", "done")
        keys.get(f"step {step}")


WAYS = {"ask": ask, "compute": compute, "download": download, "load": load, "logs": logs,
        "sockets": sockets, "store": store}

if __name__ == "__main__":
    ready()
    wait_for_all()
    WAYS[way]()
