#!/usr/bin/env python3
"""mishaps.py CULPRIT WAY: jobs without a framework. Rank CULPRIT fails or hangs by WAY; the others lose its
connection, or wait for it."""
import ctypes
import errno
import logging
import os
import signal
import socket
import sys
import time

from common import ATTEMPT, FOLDER, RANK, ready, wait_for_all, wait_long
from mesh import end_late, error_of, mesh, say, wait_for_loss

culprit, way = int(sys.argv[1]), sys.argv[2]
is_culprit = RANK == culprit
logging.basicConfig(format=f"%(asctime)s [rank{RANK}] %(levelname)s %(name)s: %(message)s",
                    level=logging.INFO)
log = logging.getLogger("worker")


# --- the culprit ---------------------------------------------------------------------


def vector(peers):
    """A program in R."""
    end_late(peers)
    say("Error: cannot allocate vector of size 3.7 Gb\nExecution halted")
    os._exit(1)


def glog_check(peers):
    """Says its reason first; its stack takes time."""
    say(f"F1126 12:00:00.{time.monotonic_ns() % 10 ** 6:06d} {os.getpid():5d} sampler.cc:88] "
        "Check failed: offset + length <= shard.size() (1048640 vs. 1048576) shard 17 is too short\n"
        "*** Check failure stack trace: ***")
    end_late(peers)
    say("    @     0x7f1c2a4b1b03  google::LogMessage::Fail()\n"
        "    @     0x7f1c2a4b8c54  google::LogMessage::SendToLog()\n"
        "    @     0x55d0c8a3a1f0  Sampler::Read()\n"
        "    @     0x55d0c8a39e04  main")
    os.abort()


def dotnet(peers):
    end_late(peers)
    say("Unhandled exception. System.InvalidOperationException: Sequence contains no elements\n"
        "   at System.Linq.ThrowHelper.ThrowNoElementsException()\n"
        "   at Trainer.Batches.Next() in /src/Trainer/Batches.cs:line 41\n"
        "   at Trainer.Program.Main(String[] args) in /src/Trainer/Program.cs:line 19")
    os.abort()


def data_loss(peers):
    end_late(peers)
    raise error_of("tensorflow.python.framework.errors_impl", "DataLossError")(
        "{{function_node __wrapped__IteratorGetNext_output_types_2_device_/job:worker/task:0}} truncated "
        "record at 1048576 [Op:IteratorGetNext] name: ")


def no_name(peers):
    """Its own download fails, with an error of the network."""
    end_late(peers)
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def stale_lock(_):
    """Leaves its lock, which stops the next attempt."""
    os.close(os.open(os.path.join(FOLDER, "run.lock"), os.O_CREAT | os.O_EXCL))
    raise ValueError(f"attempt {ATTEMPT}: the learning rate is negative")


def alarm_clock(_):
    """A library has set an alarm, and removed its handler."""
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    time.sleep(30)


def backend_error(text):
    return error_of("torch.distributed", "DistBackendError")(
        f"NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, {text}")


def no_shared_memory(peers):
    end_late(peers)
    raise backend_error(
        "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\n"
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
        "error. \nLast error:\nError while creating shared memory segment /dev/shm/nccl-7CkQ4e (size "
        "33030528), error: No space left on device (28)")


def connect(_):
    """Connects to a server that accepts nobody, and whose queue is full."""
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    others = []
    for _ in range(4):
        other = socket.socket()
        other.setblocking(False)
        other.connect_ex(server.getsockname())
        others.append(other)
    time.sleep(0.1)
    socket.create_connection(server.getsockname())


def trace(_):
    """A helper process attaches itself as a debugger does, and lets nothing go on."""
    worker = os.getpid()
    if os.fork() == 0:
        attach = 16
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(attach, worker, None, None) != 0:
            say(f"ptrace: {os.strerror(ctypes.get_errno())}")
        time.sleep(3600)
    time.sleep(3600)


def send_first(peers):
    """The culprit and the rank after it send each other more than the sockets take, and read later."""
    peers[culprit + 1 if is_culprit else culprit].sendall(bytes(64 << 20))


# --- the others ------------------------------------------------------------------------


def unserialize(peers):
    wait_for_loss(peers)
    say("Error in unserialize(node$con) : error reading from connection\n"
        "Calls: <Anonymous> ... FUN -> recvData -> recvData.SOCKnode -> unserialize\n"
        "Execution halted")
    sys.exit(1)


def glog_recv(peers):
    wait_for_loss(peers)
    say(f"E1126 12:00:00.{time.monotonic_ns() % 10 ** 6:06d} {os.getpid():5d} tcp_channel.cc:214] "
        f"recv from rank {culprit}: Connection reset by peer [104]")
    sys.exit(1)


def dotnet_io(peers):
    wait_for_loss(peers)
    say("Unhandled exception. System.IO.IOException: Unable to read data from the transport connection: "
        "Connection reset by peer.\n"
        " ---> System.Net.Sockets.SocketException (104): Connection reset by peer\n"
        "   at System.Net.Sockets.NetworkStream.Read(Span`1 buffer)\n"
        "   --- End of inner exception stack trace ---\n"
        "   at Trainer.Ring.Receive(Int32 peer) in /src/Trainer/Ring.cs:line 77\n"
        "   at Trainer.Program.Main(String[] args) in /src/Trainer/Program.cs:line 23")
    os.abort()


def unavailable(peers):
    wait_for_loss(peers)
    raise error_of("tensorflow.python.framework.errors_impl", "UnavailableError")(
        "{{function_node __wrapped__CollectiveReduceV2_device_/job:worker/task:1}} Collective ops is "
        "aborted by: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.4:2222: Socket "
        "closed\nThe error could be from a previous operation. Restart your program to reset. "
        "[Op:CollectiveReduceV2]")


def comm_closed(peers):
    wait_for_loss(peers)
    raise error_of("distributed.comm.core", "CommClosedError")(
        "in <TCP (closed) ConnectionPool.gather local=tcp://10.0.0.5:33914 remote=tcp://10.0.0.7:8786>: "
        "Stream is closed")


def reset(peers):
    wait_for_loss(peers)
    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


def remote_error(peers):
    wait_for_loss(peers)
    raise backend_error(
        "remote process exited or there was a network error, NCCL version 2.26.2\nncclRemoteError: A call "
        "failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\n"
        f"socketProgress: Connection closed by remote peer 10.0.0.7<{40000 + culprit}>")


def receive(peers):
    peers[culprit].recv(1)
    raise SystemExit("nobody has ended this rank")


def send_or_receive(peers):
    if RANK == culprit + 1:
        send_first(peers)
    else:
        receive(peers)


WAYS = {
    "alarm": (alarm_clock, reset),
    "check": (glog_check, glog_recv),
    "connect": (connect, receive),
    "dataloss": (data_loss, unavailable),
    "debugger": (trace, receive),
    "dotnet": (dotnet, dotnet_io),
    "lock": (stale_lock, lambda _: wait_long()),
    "name": (no_name, comm_closed),
    "segment": (no_shared_memory, remote_error),
    "sends": (send_first, send_or_receive),
    "vector": (vector, unserialize),
}

if __name__ == "__main__":
    connections = mesh()
    ready()
    wait_for_all()
    WAYS[way][0 if is_culprit else 1](connections)
