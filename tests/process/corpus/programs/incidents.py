#!/usr/bin/env python3
"""incidents.py CULPRIT WAY: jobs without a framework that fail or hang as those of users do. Rank CULPRIT
does so by WAY; the others lose its connection, or its answer."""
import asyncio
import ctypes
import errno
import json
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

from common import FOLDER, RANK, SIZE, read_of, ready, wait_for_all, wait_long
from mesh import end_late, error_of, mesh, say, wait_for_loss

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
logging.basicConfig(format=f"%(asctime)s [rank{RANK}] %(levelname)s %(name)s: %(message)s",
                    level=logging.INFO)
log = logging.getLogger("trainer")


# --- the culprit ---------------------------------------------------------------------


def forbidden_call(_):
    """A filter of system calls, as a container has it, kills a process that makes a folder."""
    load, jump_if_equal, leave = 0x20, 0x15, 0x06
    number, kill, allow = 83, 0x80000000, 0x7fff0000  # mkdir on x86-64
    steps = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (leave, 0, 0, kill),
             (leave, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    libc.syscall(number, os.path.join(FOLDER, "cache").encode(), 0o700)


def lost_mount(peers):
    """Its file system, a process, is gone. Its error reads as that of a socket."""
    end_late(peers)
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN), "/mnt/bucket/shards/00017.tar")


def bad_batch(peers):
    """Says its error, and ends later. again.sh starts it again."""
    try:
        raise ValueError("cannot reshape array of size 4095 into shape (64,64)")
    except ValueError:
        log.exception("batch 1700 failed")
        for peer in peers.values():
            peer.close()
        time.sleep(0.4)
        sys.exit(1)


def end_all(_):
    """As PyTorch Lightning did: the rank that fails ends the others, so that they do not wait for it."""
    try:
        raise IndexError("index 50257 is out of bounds for axis 0 with size 50257")
    except IndexError:
        trace = traceback.format_exc()
        say(f"rank {RANK} has failed, the other processes of this node are ended\n{trace}")
        for rank in range(SIZE):
            if rank != RANK:
                os.kill(int(read_of("ready", rank)), signal.SIGKILL)
        raise error_of("pytorch_lightning.utilities.exceptions", "DeadlockDetectedException")(
            f"DeadLock detected from rank: {RANK} \n {trace}")


def watchdog_times_out(_):
    """The culprit gathers a metric where the others sum: all wait, and all time out."""
    time.sleep(1.05 if is_culprit else 1)
    work = ("SeqNum=4486, OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=24" if is_culprit else
            "SeqNum=4486, OpType=ALLREDUCE, NumelIn=25557032, NumelOut=25557032")
    prefix = f"[PG ID 0 PG GUID 0(default_pg) Rank {RANK}]"
    late = (f"[Rank {RANK}] Watchdog caught collective operation timeout: WorkNCCL({work}, "
            "Timeout(ms)=600000) ran for 600023 milliseconds before timing out.")
    where = f"[rank{RANK}]:[E1126 12:00:00.{time.monotonic_ns() % 10 ** 9:09d} ProcessGroupNCCL.cpp"
    say(f"{where}:632] {late}")
    say(f"{where}:2271] {prefix}  failure detected by watchdog at work sequence id: 4486 PG status: last "
        "enqueued work: 4486, last completed work: 4485")
    say(f"{where}:684] [Rank {RANK}] To avoid data inconsistency, we are taking the entire process down.")
    text = f"{prefix} Process group watchdog thread terminated with exception: {late}"
    say(f"{where}:2093] {text}\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {text}\n")
    os.abort()


def tokenize(_):
    """Prepares the data for all, before it meets them."""
    for step in range(300):
        sys.stderr.write(f"\rRunning tokenizer on dataset (num_proc=8): {step / 3:3.0f}%|{'#' * (step // 30)}"
                         f" | {step * 1000}/300000 [00:{step // 5:02d}<01:00, 4987.12 examples/s]")
        sys.stderr.flush()
        time.sleep(0.2)


def rich_traceback(peers):
    """Its tracebacks have frames, as those of the library rich."""
    end_late(peers)
    rows = ["/app/train.py:112 in <module>", "", "  109     config = load()",
            "  110     model = build(config)", "❱ 112     main(model, config)", "",
            "/app/train.py:87 in main", "", "❱  87     model.embed.check(tokenizer)"]
    say("╭" + " Traceback (most recent call last) ".center(78, "─") + "╮")
    for row in rows:
        say("│ " + row.ljust(77) + "│")
    say("╰" + "─" * 78 + "╯\n"
        "ValueError: the tokenizer has 32000 tokens, but the embedding has 31999 rows")
    os._exit(1)


def log_json(event, error):
    trace = "".join(traceback.format_exception(error))
    print(json.dumps({"timestamp": time.time(), "level": "error", "rank": RANK, "logger": "trainer",
                      "event": event, "exception": trace}), flush=True)


def json_error(peers):
    try:
        {"input_ids": [1, 2]}["attention_mask"]
    except KeyError as error:
        end_late(peers, 0.2)
        log_json("step 812 failed", error)
        time.sleep(0.4)  # sends its log
        os._exit(3)


def copy_shards(peers):
    """A tool that it has started fails."""
    try:
        text = 'rsync: [receiver] write failed on "/scratch/7.tar": No space left on device (28)'
        subprocess.run(["sh", "-c", f"echo '{text}' >&2; exit 11"], check=True)
    finally:
        end_late(peers)


def read_fifo(_):
    path = os.path.join(FOLDER, "frames.fifo")
    os.mkfifo(path)
    os.read(os.open(path, os.O_RDWR), 1)


def leave(_):
    os._exit(3)


async def wait_for_future():
    await asyncio.get_running_loop().create_future()  # nobody sets it


def await_answer(_):
    asyncio.run(wait_for_future())


def send_metrics(_):
    """Sends to a server that has stopped to read."""
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.sendall(bytes(64 << 20))


# --- the others ------------------------------------------------------------------------


def eof(peers):
    wait_for_loss(peers)
    raise EOFError("connection to a peer has ended")


def reset(peers):
    wait_for_loss(peers)
    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


def no_unique_id(_):
    time.sleep(2)
    raise error_of("torch.distributed", "DistBackendError")(
        f"[{RANK}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
        "key-value store by store->get('0'), but store->get('0') got error: wait timeout after "
        "600000ms, keys: /default_pg/0//cuda//0")


def redis(peers):
    wait_for_loss(peers)
    raise error_of("redis.exceptions", "ConnectionError")("Connection closed by server.")


def json_reset(peers):
    try:
        reset(peers)
    except ConnectionResetError as error:
        log_json("all_reduce failed", error)
        os._exit(3)


def aiohttp(peers):
    wait_for_loss(peers)
    raise error_of("aiohttp.client_exceptions", "ServerDisconnectedError")("Server disconnected")


def miss_heartbeat(peers):
    """Rank 0 watches the others; they wait for their next orders."""
    if RANK == 0:
        readable, _, _ = select.select([peers[culprit]], [], [], 2)
        if not readable:
            raise RuntimeError(f"no heartbeat from rank {culprit} for 2 s, ending the job")
    wait_long()


def receive(peers):
    peers[culprit].recv(1)
    raise SystemExit("nobody has ended this rank")


WAYS = {
    "await": (await_answer, receive),
    "bad-batch": (bad_batch, reset),
    "desync": (watchdog_times_out, watchdog_times_out),
    "ends-all": (end_all, lambda _: wait_long()),
    "heartbeat": (read_fifo, miss_heartbeat),
    "json": (json_error, json_reset),
    "mount": (lost_mount, reset),
    "optional": (leave, eof),
    "rich": (rich_traceback, redis),
    "rsync": (copy_shards, aiohttp),
    "seccomp": (forbidden_call, eof),
    "send": (send_metrics, receive),
    "tokenize": (tokenize, no_unique_id),
}

if __name__ == "__main__":
    if way == "optional" and not is_culprit:
        try:
            import a_fast_attention_that_is_not_installed  # noqa: F401
        except ImportError:
            log.exception("fast attention is not available, using the slow one")
    connections = mesh()
    ready()
    wait_for_all()
    WAYS[way][0 if is_culprit else 1](connections)
