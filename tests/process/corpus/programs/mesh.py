"""Connections between all ranks, for the Python programs of the corpus."""
import socket

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
