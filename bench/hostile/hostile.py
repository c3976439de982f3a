"""Restarts and requests to the store while strangers attack, for hostile.sh.
Usage: hostile.py BIN-FOLDER RESTARTS

A job of two nodes whose coordinator and store share a port, so that each stranger reaches both.
Ratios are to the quiet job before and after.
"""

import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

KINDS = ["quiet", "silent", "slow", "garbage", "wrong secret", "wrong version", "quiet"]
WORKERS = 2  # of a node
TARGET = 2.0
SECONDS = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_nodes(folder, bin_folder, port, restarts):
    secret = folder / "secret"
    secret.write_text("the secret of the benchmark")
    secret.chmod(0o600)
    command = [f"{bin_folder}/rankrun", "--nnodes=2", f"--nproc-per-node={WORKERS}",
               "--rdzv-backend=static", "--master-addr=127.0.0.1", f"--master-port={port}",
               f"--max-restarts={restarts}", "--restart-pause=0", f"--secret-file={secret}",
               "--no-python"]
    worker = [f"{bin_folder}/hostile_worker", str(folder / "log"), str(restarts)]
    return [subprocess.Popen(command + [f"--node-rank={rank}"] + worker,
                             stderr=open(folder / f"err{rank}", "w")) for rank in range(2)]


def wait_for_workers(folder, nodes):
    log = folder / "log"
    deadline = time.monotonic() + SECONDS
    while not log.exists() or log.read_text().count("main 0 ") < 2 * WORKERS:
        if any(node.poll() is not None for node in nodes) or time.monotonic() > deadline:
            sys.exit("hostile.py: the job failed: " + (folder / "err0").read_text())
        time.sleep(0.005)


def start_attack(kind, port):
    script = pathlib.Path(__file__).with_name("hostile_attack.py")
    attack = subprocess.Popen([sys.executable, script, kind, str(port)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert attack.stdout.readline() == "ready\n"
    return attack


def read_log(path, restarts):
    """Returns the medians of restarts in ms, and of p50 and p99 of requests in us."""
    begins, deaths, p50, p99 = {}, {}, [], []
    for line in path.read_text().splitlines():
        word, attempt, *times = line.split()
        if word == "main":
            begins[int(attempt)] = max(begins.get(int(attempt), 0), int(times[0]))
        elif word == "died":
            deaths[int(attempt)] = int(times[0])
        else:
            p50.append(int(times[0]) / 1e3)
            p99.append(int(times[1]) / 1e3)
    latencies = [(begins[i + 1] - deaths[i]) / 1e6 for i in range(restarts)]
    return [statistics.median(values) for values in (latencies, p50, p99)]


def measure(kind, bin_folder, restarts):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port = free_port()
        processes = nodes = start_nodes(folder, bin_folder, port, restarts)
        try:
            wait_for_workers(folder, nodes)
            if kind != "quiet":
                processes = nodes + [start_attack(kind, port)]
            (folder / "log.go").touch()
            codes = [node.wait(SECONDS) for node in nodes]
        finally:  # also after a failure nothing goes on
            for process in processes:
                process.kill()
                process.wait()
        if codes != [0, 0]:
            sys.exit(f"hostile.py: the job ended with {codes}: " + (folder / "err0").read_text())
        return read_log(folder / "log", restarts)


def main():
    bin_folder, restarts = sys.argv[1], int(sys.argv[2])
    results = [(kind, measure(kind, bin_folder, restarts)) for kind in KINDS]
    quiet = [statistics.mean(values) for values in zip(*(r for kind, r in results if kind == "quiet"))]
    print(f"{restarts} restarts of {2 * WORKERS} workers, 500 strangers; medians; ratio to quiet\n"
          f"{'':<14} {'restart':>10} {'':>7} {'p50':>9} {'store p99':>12}")
    for kind, (restart, p50, p99) in results:
        ratios = restart / quiet[0], p99 / quiet[2]
        verdict = "" if kind == "quiet" else "met" if max(ratios) <= TARGET else "MISSED"
        print(f"{kind:<14} {restart:>7.1f} ms {ratios[0]:>6.2f}x {p50:>6.0f} us {p99:>6.0f} us "
              f"{ratios[1]:>6.2f}x  {verdict}")


main()
