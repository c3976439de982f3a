#!/usr/bin/env python3
"""bystanders.py CULPRIT WAY VICTIMS: as peers.py, with more runtimes and more ways to fail.

Rank CULPRIT fails by WAY. The others lose its connection, or its answer, and end as VICTIMS says.
"""
import concurrent.futures
import faulthandler
import http.client
import logging
import os
import select
import signal
import sys
import threading
import time

from common import ATTEMPT, FOLDER, RANK, ready, wait_for_all, wait_long
from mesh import mesh

culprit, way, victims = int(sys.argv[1]), sys.argv[2], sys.argv[3]
logging.basicConfig(format=f"%(asctime)s [rank{RANK}] %(levelname)s %(name)s: %(message)s",
                    level=logging.INFO)


def error_of(module, name):
    """Returns a class that prints as that of a library."""
    return type(name, (Exception,), {"__module__": module})


def say(text):
    print(text, file=sys.stderr, flush=True)


def end_late(peers, pause=0.5):
    """Loses its connections now, and ends later."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for peer in peers.values():
        peer.close()
    time.sleep(pause)


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


def load_batch():
    """Reads from a file system that does not answer."""
    path = os.path.join(FOLDER, "batches.fifo")
    os.mkfifo(path)
    os.read(os.open(path, os.O_RDWR), 1)


def receive_gradients(peers):
    if not peers[culprit].recv(1):
        raise EOFError("no gradients")


def leave_after_two_seconds():
    time.sleep(2)
    say(f"watchdog: step 12 has taken 2 s on rank {RANK}, leaving")
    os._exit(70)


def watch(peers):
    """All ranks have a watchdog, which shows their stacks and ends them a second later."""
    faulthandler.dump_traceback_later(1)
    threading.Thread(target=leave_after_two_seconds, daemon=True).start()
    load_batch() if RANK == culprit else receive_gradients(peers)


def prepare(peers):
    """As a driver with workers: the culprit tells rank 0 its error, and waits for the next order."""
    if RANK == culprit:
        try:
            open("/data/shard-9.bin")
        except OSError as error:
            logging.exception("prepare failed")
            peers[0].sendall(f"{type(error).__name__}: {error}".encode())
    if RANK == 0:
        text = peers[culprit].recv(1000).decode()
        raise RuntimeError(f"rank {culprit} has failed in prepare(): {text}")
    wait_long()


def send_gradients():
    {}["layers.7.weight"]


def fail(peers):
    if way == "range":
        end_late(peers)
        raise ValueError("token 50257 is out of range at step 12")
    if way == "pool":  # the kernel, or an operator, kills a process of its pool
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            pool.submit(crash).result()
    if way == "storage":
        end_late(peers)
        raise error_of("botocore.exceptions", "ConnectionClosedError")(
            "Connection was closed before we received a valid response from endpoint URL: "
            '"https://corpus.s3.eu-central-1.amazonaws.com/shard-00017.tar".')
    if way == "illegal":  # a build for another processor
        os.kill(os.getpid(), signal.SIGILL)
    if way == "thread":  # a thread dies; the main thread waits for it, and stays connected
        threading.Thread(target=send_gradients).start()
        wait_long()
    if way == "mpi-abort":
        say("solver: negative Jacobian in element 4711")
        say("-" * 74 + f"\nMPI_ABORT was invoked on rank {RANK} in communicator MPI_COMM_WORLD\n"
            "with errorcode 13.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI "
            "processes.\n" + "-" * 74)
        end_late(peers)
        os._exit(13)
    if way == "javascript" and ATTEMPT == 0:
        say("\n<--- Last few GCs --->\n\n[811:0x5e0c000]    41234 ms: Mark-Compact 4093.1 (4136.7) -> "
            "4092.9 (4137.7) MB, pooled: 0 MB, 1841.77 / 0.00 ms allocation failure; scavenge might "
            "not succeed\n\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out "
            "of memory\n----- Native stack trace -----\n\n 1: 0xb8ced1 node::OOMErrorHandler"
            "(char const*, v8::OOMDetails const&) [node]")
        end_late(peers)
        os.abort()
    if way == "javascript":
        sys.exit(0)
    wait_long()  # "nothing": a signal comes from outside


def react(peers):
    readable, _, _ = select.select(list(peers.values()), [], [], 1 if victims == "zmq" else 20)
    if way == "javascript" and ATTEMPT > 0:
        sys.exit(0)
    if victims == "zmq":
        raise error_of("zmq.error", "Again")("Resource temporarily unavailable")
    if not readable:
        raise SystemExit("no peer was lost for 20 s")
    if victims == "ucx":
        say(f"[1795694400.318822] [node{RANK}:811  :0]     ucp_ep.c:1504 UCX  DIAG  ep 0x7f3c40: error "
            "'Connection reset by remote peer' on tcp/eth0 will not be handled since no error "
            f"callback is installed\n[node{RANK}:811  :0:811] Caught signal 11 (Segmentation fault: "
            "address not mapped to object at address 0x18)\n==== backtrace (tid:    811) ====\n"
            " 0  /usr/lib/libucs.so.0(ucs_handle_error+0x2e4) [0x7f3c4c0e9fc4]\n"
            " 1  /usr/lib/libucp.so.0(ucp_worker_progress+0x5a) [0x7f3c4c1567ea]\n"
            "=================================")
        os.kill(os.getpid(), signal.SIGSEGV)
    if victims == "websockets":
        raise error_of("websockets.exceptions", "ConnectionClosedError")(
            "no close frame received or sent")
    if victims == "http":
        raise error_of("requests.exceptions", "ConnectionError")(
            "Connection aborted.",
            http.client.RemoteDisconnected("Remote end closed connection without response"))
    if victims == "julia":
        say("ERROR: LoadError: EOFError: read end of file\nStacktrace:\n"
            " [1] read(this::Sockets.TCPSocket, ::Type{UInt8})\n   @ Base ./stream.jl:985\n"
            " [2] exchange!(g::Vector{Float32}, peers::Vector{Sockets.TCPSocket})\n"
            "   @ Main ~/train.jl:88\nin expression starting at /home/user/train.jl:140")
        os._exit(1)
    if victims == "mpi":
        head = f"[node{RANK}:00811] ***"
        say(f"{head} An error occurred in MPI_Allreduce\n{head} reported by process "
            f"[1310720001,{RANK}]\n{head} on communicator MPI_COMM_WORLD\n{head} MPI_ERR_PROC_FAILED: "
            f"Process Failure\n{head} MPI_ERRORS_ARE_FATAL (processes in this communicator will now "
            f"abort,\n{head}    and MPI will try to terminate your MPI job as well)")
        os._exit(75)
    if victims == "node":
        say("node:events:497\n      throw er; // Unhandled 'error' event\n      ^\n\n"
            "Error: read ECONNRESET\n    at TCP.onStreamRead (node:internal/stream_base_commons:216:20)"
            "\nEmitted 'error' event on Socket instance at:\n    at emitErrorNT "
            "(node:internal/streams/destroy:170:8) {\n  errno: -104,\n  code: 'ECONNRESET',\n"
            "  syscall: 'read'\n}\n\nNode.js v22.11.0")
        os._exit(1)


if __name__ == "__main__":
    peers = mesh()
    ready()
    wait_for_all()
    if way == "watchdog":
        watch(peers)
    if way == "driver":
        prepare(peers)
    if RANK == culprit:
        fail(peers)
    react(peers)
