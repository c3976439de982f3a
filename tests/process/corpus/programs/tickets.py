#!/usr/bin/env python3
"""tickets.py RANK WAY: failures of training jobs as users report them, with the texts of their
libraries. Rank RANK fails or hangs by WAY; the others lose its connection, or its answer."""
import argparse
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

from common import ATTEMPT, FOLDER, RANK, ready, wait_for_all
from mesh import mesh

culprit, way = int(sys.argv[1]), sys.argv[2]
REMOTE = ("ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
          "prematurely.\nLast error:\nsocketPollConnect: connect to 10.0.0.2<43512> returned Connection "
          "refused, exceeded error retry count (35)")


def say(text):
    print(text, file=sys.stderr, flush=True)


def error_of(module, name):
    """Returns a class that prints as that of a library."""
    return type(name, (Exception,), {"__module__": module})


def close(peers):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for peer in peers.values():
        peer.close()


def watchdog_aborts(rank, what):
    """As the thread of PyTorch that watches NCCL."""
    text = (f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with "
            f"exception: {what}")
    say(f"[rank{rank}]:[E1126 12:00:00.{time.monotonic_ns() % 10 ** 9:09d} ProcessGroupNCCL.cpp:2093] "
        f"{text}\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {text}\n")
    os.abort()


def device_assert(peers):
    """Its kernel asserts, and the others lose it long before Python hears of it."""
    for block in range(40):
        say("/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: block: "
            f"[{block},0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.")
    close(peers)
    time.sleep(0.6)
    raise error_of("torch", "AcceleratorError")(
        "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported "
        "at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider "
        "passing CUDA_LAUNCH_BLOCKING=1")


def bad_memory(peers):
    """A memory of its GPU is broken. Its end, with a dump, takes longer than that of the others."""
    close(peers)
    time.sleep(0.5)
    watchdog_aborts(RANK, "CUDA error: uncorrectable ECC error encountered")


def out_of_memory(peers):
    """In the first attempt. The CUDA context is torn down before Python has printed its error."""
    close(peers)
    time.sleep(0.4)
    raise error_of("torch", "OutOfMemoryError")(
        "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.11 GiB of "
        "which 1.03 GiB is free. Including non-PyTorch memory, this process has 78.07 GiB memory in use.")


def track(_):
    """Its library of experiments gives up, after the others have given up to wait for it."""
    signal.signal(signal.SIGTERM, lambda *_: say("received SIGTERM: 15"))
    say("wandb: Currently logged in as: corpus. Use `wandb login --relogin` to force relogin")
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        time.sleep(0.1)
    raise error_of("wandb.errors.errors", "CommError")(
        "Run initialization has timed out after 90.0 sec. Please try increasing the timeout with the "
        "`init_timeout` setting: `wandb.init(settings=wandb.Settings(init_timeout=120))`.")


def hold(lock):
    with lock:
        time.sleep(0.5)


def fork_with_a_lock(_):
    """A thread has a lock while its process is forked; the child waits for it, and the parent for the
    child's sample."""
    lock, (reader, writer) = threading.Lock(), os.pipe()
    threading.Thread(target=hold, args=(lock,)).start()
    time.sleep(0.1)
    if os.fork() == 0:
        with lock:
            os.write(writer, b"sample")
        os._exit(0)
    os.read(reader, 6)


def lose(peers):
    """What the others do."""
    if way == "fork":
        peers[culprit].recv(1)
    limit = 1.5 if way == "track" else 20
    readable, _, _ = select.select(list(peers.values()), [], [], limit)
    if way == "track":
        raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out "
                           "waiting 600000ms for recv operation to complete")
    if not readable:
        raise SystemExit("no peer was lost for 20 s")
    if way == "device-assert":
        raise error_of("torch.distributed", "DistBackendError")(
            "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, remote process exited "
            f"or there was a network error, NCCL version 2.26.2\n{REMOTE}")
    watchdog_aborts(RANK, f"NCCL error: remote process exited or there was a network error, NCCL version "
                          f"2.26.2\n{REMOTE}")


def build():
    """The culprit builds an extension for all of its node, and fails. The others cannot load it."""
    folder = os.path.join(FOLDER, "torch_extensions")
    done = os.path.join(FOLDER, "built")
    if RANK != culprit:
        while not os.path.exists(done):
            time.sleep(0.1)
        raise ImportError(f"{folder}/fused_adam/fused_adam.so: cannot open shared object file: "
                          "No such file or directory")
    wait_for_all()
    try:
        raise RuntimeError("Error building extension 'fused_adam'")
    except RuntimeError:
        say("FAILED: [code=1] multi_tensor_adam.cuda.o \n/usr/local/cuda/bin/nvcc -O3 -c "
            "multi_tensor_adam.cu\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n"
            "ninja: build stopped: subcommand failed.")
        traceback.print_exc()
        sys.stderr.flush()
        os.close(os.open(done, os.O_CREAT | os.O_WRONLY))
        time.sleep(0.4)  # its other threads end first
        os._exit(1)


def start_numpy():
    """A library is missing where both ranks of node 1 run. The others wait for them."""
    if RANK // 2 == culprit // 2:
        print("Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so.2 or libmkl_def.so.2.", flush=True)
        os._exit(2)
    server = socket.create_server(("127.0.0.1", 0))
    server.accept()


def parse():
    """A script for the old launcher: the new one does not want this argument."""
    parser = argparse.ArgumentParser(prog="finetune.py")
    parser.add_argument("--local_rank", type=int)
    parser.add_argument("--model", required=True)
    logging.warning("--local_rank is deprecated")
    parser.parse_args(["--model", "corpus/7b", "--local-rank=0"])


FAIL = {"device-assert": device_assert, "ecc": bad_memory, "fork": fork_with_a_lock,
        "memory": out_of_memory, "track": track}

if __name__ == "__main__":
    if way == "memory" and ATTEMPT > 0:
        sys.exit(0)
    if way == "parse":
        parse()
    if way in ("build", "numpy"):
        ready()
        if way == "numpy":
            wait_for_all()
        build() if way == "build" else start_numpy()
    peers = mesh()
    ready()
    wait_for_all()
    if RANK == culprit:
        FAIL[way](peers)
    lose(peers)
