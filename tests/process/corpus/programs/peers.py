#!/usr/bin/env python3
"""peers.py CULPRIT WAY VICTIMS: workers with a connection to each other, without a framework.

Rank CULPRIT fails by WAY. The others notice the loss of their peer at once and end as VICTIMS says.
"""
import os
import select
import signal
import sys
import time
import traceback

from common import RANK, SIZE, publish, read_of, ready, wait_for_all, wait_long
from mesh import mesh

culprit, way, victims = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def traceback_of(error, pause=0.0):
    for line in ("Traceback (most recent call last):",
                 '  File "train.py", line 7, in <module>', error):
        print(line, file=sys.stderr, flush=True)
        time.sleep(pause)


def close(peers):
    for peer in peers.values():
        peer.close()


def fail(peers):
    if way == "raise":
        raise ValueError("loss is nan at step 12")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "native":  # as a program with an error of its own and no words
        os._exit(3)
    if way == "late-native":  # its connections close long before it ends
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        close(peers)
        time.sleep(0.5)
        os._exit(3)
    if way == "late-abort":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        close(peers)
        time.sleep(0.5)
        print("terminate called after throwing an instance of 'std::bad_alloc'",
              file=sys.stderr, flush=True)
        os.abort()
    if way == "atexit":  # the traceback is complete; the rest of the exit takes long
        print("preparing", file=sys.stderr)
        traceback_of("ValueError: loss is nan at step 12")
        close(peers)
        time.sleep(20)
    if way == "slow":  # the others end while it still prints
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        close(peers)
        traceback_of("ValueError: loss is nan at step 12", 0.15)
        os._exit(1)
    if way == "logged":
        print("Connection refused, trying again", file=sys.stderr, flush=True)
        print("Connection reset by peer; connected again", file=sys.stderr, flush=True)
        raise ValueError("loss is nan at step 12")
    if way == "broken-file":  # a broken pipe that has nothing to do with the peers
        raise FileNotFoundError(2, "No such file or directory", "/data/shard-7")
    if way == "silent":  # comes to nothing any more, but keeps its connections
        wait_long()
    if way == "storage":  # a time-out that has nothing to do with the peers
        raise TimeoutError(110, "Connection timed out", "storage:9000")
    if way == "exit0":  # leaves early, as with fewer batches
        os._exit(0)


def wait_for_victims():
    """Until all have written their errors. Otherwise the end of one stops the others before."""
    publish("given-up", "")
    for rank in range(SIZE):
        if rank != culprit:
            read_of("given-up", rank)


def give_up():
    try:
        react(culprit, ("127.0.0.1", 4711))
    except (TimeoutError, RuntimeError):
        traceback.print_exc()
        sys.stderr.flush()
    wait_for_victims()
    os._exit(1)


def react(rank, address):
    if victims == "reset":
        raise ConnectionResetError(104, "Connection reset by peer")
    if victims == "eof":
        raise EOFError
    if victims == "pipe":
        raise BrokenPipeError(32, "Broken pipe")
    if victims == "sigpipe":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    if victims == "gloo":
        raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] "
                           f"Connection closed by peer [{address[0]}]:{address[1]}")
    if victims == "network":
        traceback_of("torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection "
                     "was likely closed. Did the remote server shutdown or crash?")
        os._exit(1)
    if victims == "nccl":
        what = (f"[PG ID 0 PG GUID 0(default_pg) Rank {RANK}] Process group watchdog thread terminated "
                "with exception: NCCL error: remote process exited or there was a network error, "
                "NCCL version 2.27.5\nncclRemoteError: A call failed possibly due to a network error "
                "or a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection "
                "closed by remote peer node3<41234>")
        print(f"[rank{RANK}]:[E1126 12:00:00.000000000 ProcessGroupNCCL.cpp:2093] {what}\n"
              f"terminate called after throwing an instance of 'c10::DistBackendError'\n"
              f"  what():  {what}\n", file=sys.stderr, flush=True)
        os.abort()
    if victims == "perror":  # a program in C
        print("recv: Connection reset by peer", file=sys.stderr, flush=True)
        os._exit(1)
    if victims == "mpi":
        print(f"lost connection to rank {rank}", file=sys.stderr, flush=True)
        os._exit(1)
    if victims == "chained":
        try:
            raise ConnectionResetError(104, "Connection reset by peer")
        except ConnectionResetError as error:
            raise RuntimeError("training step 12 failed") from error
    if victims == "retry":  # logs its tries, and then gives up
        for _ in range(3):
            print("Connection refused, trying again", file=sys.stderr, flush=True)
        raise ConnectionRefusedError(111, "Connection refused")
    if victims == "timeout":
        raise TimeoutError("timed out")
    if victims == "gloo-timeout":
        raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
                           "Timed out waiting 1800000ms for recv operation to complete")
    if victims == "nccl-timeout":
        what = (f"[Rank {RANK}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, "
                "OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=600000) ran for 600021 "
                "milliseconds before timing out.")
        print(f"[rank{RANK}]:[E1126 12:00:00.000000000 ProcessGroupNCCL.cpp:632] {what}\n"
              f"terminate called after throwing an instance of 'c10::DistBackendError'\n"
              f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {RANK}] Process group watchdog thread "
              f"terminated with exception: {what}\n", file=sys.stderr, flush=True)
        wait_for_victims()
        os.abort()
    if victims == "stays":
        wait_long()


if __name__ == "__main__":
    peers = mesh()
    ready()
    wait_for_all()
    if RANK == culprit:
        fail(peers)
    ranks = {peer: rank for rank, peer in peers.items()}
    readable, _, _ = select.select(list(ranks), [], [], 1 if way == "silent" else 20)
    if way == "silent":
        give_up()
    if not readable:
        raise SystemExit("no peer was lost for 20 s")
    react(ranks[readable[0]], ("127.0.0.1", 4711))
