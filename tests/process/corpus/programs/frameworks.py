#!/usr/bin/env python3
"""frameworks.py CULPRIT WAY VICTIMS: as peers.py, with the ends of other frameworks.

Rank CULPRIT fails by WAY. The others lose its connection, or its answer, and end as VICTIMS says.
"""
import os
import pickle
import resource
import select
import signal
import socket
import sys
import time
import urllib.request

from common import RANK, ready, wait_for_all, wait_long
from mesh import mesh

culprit, way, victims = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def say(text):
    print(text, file=sys.stderr, flush=True)


def close(peers):
    for peer in peers.values():
        peer.close()


def fail(peers):
    if way == "heap":  # Java stands still, with its connections, until the dump is complete
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("java.lang.OutOfMemoryError: Java heap space\nDumping heap to java_pid17.hprof ...")
        time.sleep(1.5)
        say("Heap dump file created [1610612736 bytes in 1.497 secs]\n"
            "Terminating due to java.lang.OutOfMemoryError: Java heap space")
        os._exit(3)
    if way == "core":  # its network thread is gone at once; the core file takes time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        close(peers)
        time.sleep(0.6)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
        files = []
        while True:
            files.append(socket.socket())
    if way == "download":  # a server that has nothing to do with the other ranks
        urllib.request.urlopen("http://127.0.0.1:1/models/tokenizer.json")
    if way == "half":  # killed in the middle of a message
        data = pickle.dumps(list(range(5000)))
        for peer in peers.values():
            peer.sendall(data[:len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    wait_long()


def react(peers):
    if victims == "java":
        select.select([peers[culprit]], [], [], 0.7)
        say('Exception in thread "main" java.net.SocketTimeoutException: Read timed out\n'
            "\tat java.base/sun.nio.ch.NioSocketImpl.timedRead(NioSocketImpl.java:278)\n"
            "\tat java.base/java.net.Socket$SocketInputStream.read(Socket.java:1099)\n"
            "\tat ml.trainer.AllReduce.step(AllReduce.java:88)\n"
            "\tat ml.trainer.Main.main(Main.java:41)")
        os._exit(1)
    if victims == "pickle":
        data = b""
        while part := peers[culprit].recv(65536):
            data += part
        pickle.loads(data)
    readable, _, _ = select.select(list(peers.values()), [], [], 20)
    if not readable:
        raise SystemExit("no peer was lost for 20 s")
    if victims == "jax":
        say("E1126 12:00:00.000000 811 coordination_service_agent.cc:322] Polled an error from "
            "coordination service (this can be an error from this or another task).\n"
            "F1126 12:00:00.000001 811 client.h:80] Terminating process because the JAX distributed "
            "service detected fatal errors. This most likely indicates that another task died; see "
            "the other task logs for more details. absl::Status: UNAVAILABLE: The following tasks "
            "are unhealthy (stopped sending heartbeats):\n"
            f"/job:jax_worker/replica:0/task:{culprit}\n"
            "The tasks have crashed. Check the task logs for an earlier error.")
        os.abort()
    if victims == "horovod":
        raise RuntimeError(
            "Horovod has been shut down. This was caused by an exception on one of the ranks or an "
            "attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished "
            "execution.")
    raise ConnectionResetError(104, "Connection reset by peer")


if __name__ == "__main__":
    peers = mesh()
    ready()
    wait_for_all()
    if RANK == culprit:
        fail(peers)
    react(peers)
