#!/usr/bin/env python3
"""rivals.py CULPRIT WAY VICTIMS: as peers.py, with other languages, libraries and habits.

Rank CULPRIT fails by WAY. The others lose its connection at once and end as VICTIMS says.
"""
import asyncio
import io
import logging
import os
import select
import signal
import sys
import tarfile
import time

from common import RANK, ready, wait_for_all, wait_long
from mesh import mesh

culprit, way, victims = int(sys.argv[1]), sys.argv[2], sys.argv[3]
logging.basicConfig(format=f"%(asctime)s [rank{RANK}] %(levelname)s %(name)s: %(message)s",
                    level=logging.INFO)
log = logging.getLogger("trainer")


def say(text):
    print(text, file=sys.stderr, flush=True)


def close(peers):
    for peer in peers.values():
        peer.close()


def fail(peers):
    if way == "rust":  # its threads are joined after the panic; SIGTERM kills it meanwhile
        say("\nthread 'main' panicked at src/loader.rs:88:14:\n"
            "index out of bounds: the len is 32000 but the index is 32001\n"
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace")
        close(peers)
        time.sleep(0.5)
        os._exit(101)
    if way == "go":
        say("panic: runtime error: index out of range [7] with length 3\n\n"
            "goroutine 1 [running]:\nmain.(*Loader).Next(...)\n\t/src/loader.go:41\n"
            "main.train(0xc000012345, 0x3)\n\t/src/train.go:112 +0x2b4\n"
            "main.main()\n\t/src/main.go:88 +0x1d")
        os._exit(2)
    if way == "logs":  # the error is in the log, with lines after it, and the end comes late
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            tarfile.open(fileobj=io.BytesIO(b"x" * 700), mode="r:")
        except tarfile.TarError:
            log.exception("cannot decode shard-00017.tar")
        close(peers)
        time.sleep(0.5)
        log.info("uploading 3 log files")
        log.info("run finished with status failed")
        sys.exit(1)
    if way == "stdout":  # the error goes to standard output, and the end comes late
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("FATAL: the vocabulary has 0 entries", flush=True)
        close(peers)
        time.sleep(0.5)
        os._exit(1)
    wait_long()  # "preempted": a signal from outside comes


def preempted(peers):
    """The handler of a worker that is asked by a scheduler, not by rankrun, to leave."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("preempted by the scheduler: writing checkpoint-1200")
    close(peers)
    time.sleep(0.5)
    say("checkpoint-1200 is complete")
    os._exit(143)


async def read_answer(peers):
    async def read(peer):
        reader, _ = await asyncio.open_connection(sock=peer)
        return await reader.readexactly(8)

    await asyncio.gather(*(read(peer) for peer in peers.values()))


class InactiveRpcError(Exception):
    """Prints as grpc's error of the same name."""


def react(peers):
    if victims == "asyncio":
        asyncio.run(read_answer(peers))
    select.select(list(peers.values()), [], [], 20)
    if victims == "rust":
        say('Error: Os { code: 104, kind: ConnectionReset, message: "Connection reset by peer" }')
        os._exit(1)
    if victims == "go":
        say("2026/11/26 12:00:00 step 12: allreduce: read tcp 127.0.0.1:46710->127.0.0.1:4711: "
            "read: connection reset by peer")
        os._exit(1)
    if victims == "grpc":
        raise InactiveRpcError(
            "<_InactiveRpcError of RPC that terminated with:\n"
            "\tstatus = StatusCode.UNAVAILABLE\n\tdetails = \"Socket closed\"\n"
            "\tdebug_error_string = \"UNKNOWN:Error received from peer ipv4:127.0.0.1:4711 "
            "{grpc_status:14, grpc_message:\"Socket closed\"}\"\n>")
    raise ConnectionResetError(104, "Connection reset by peer")


if __name__ == "__main__":
    peers = mesh()
    if way == "preempted" and RANK == culprit:
        signal.signal(signal.SIGTERM, lambda _signal, _frame: preempted(peers))
    ready()
    wait_for_all()
    if RANK == culprit:
        fail(peers)
    react(peers)
