"""Connections between all ranks, for the Python programs of the corpus."""
import select
import signal
import socket
import sys
import time

from common import RANK, SIZE, publish, read_of


def mesh():
    """Returns a socket for each other rank."""
    listener = socket.create_server(("127.0.0.1", 0))
    publish("port", str(listener.getsockname()[1]))
    peers = {}
    for rank in range(RANK):
        peers[rank] = socket.create_connection(("127.0.0.1", int(read_of("port", rank))))
        peers[rank].sendall(bytes([RANK]))
    for _ in range(RANK + 1, SIZE):
        peer, _ = listener.accept()
        peers[peer.recv(1)[0]] = peer
    return peers


def say(text):
    print(text, file=sys.stderr, flush=True)


def error_of(module, name):
    """Returns a class that prints as that of a library."""
    return type(name, (Exception,), {"__module__": module})


def end_late(peers, pause=0.5):
    """Loses its connections now, and ends later."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for peer in peers.values():
        peer.close()
    time.sleep(pause)


def wait_for_loss(peers):
    readable, _, _ = select.select(list(peers.values()), [], [], 20)
    if not readable:
        raise SystemExit("no peer was lost for 20 s")
