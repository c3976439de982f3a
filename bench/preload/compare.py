"""Compares starts and restarts of an unchanged PyTorch program: bench/preload.sh."""

import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import comparison  # noqa: E402
from comparison import Failed, judge  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "train.py"
LIMIT_SECONDS = 120
MIN_START_RATIO = 2.5  # of torchrun's time
MAX_RESTART_SECONDS = 0.5


class Launcher:
    """A way to start the program, and what was measured of it."""

    def __init__(self, name, command):
        self.name = name
        self.command = command
        self.starts = []
        self.restarts = []
        self.memory = []


def await_ranks(job, folder, attempt, ranks):
    """Returns the pid, the end of the first all_reduce and the memory of each rank."""
    limit = time.monotonic() + LIMIT_SECONDS
    files = [folder / f"{attempt}.{rank}" for rank in range(ranks)]
    while not all(file.exists() for file in files):
        if job.poll() is not None:
            raise Failed(f"{job.args[0]} has ended with {job.returncode}")
        if time.monotonic() > limit:
            raise Failed(f"{job.args[0]}: attempt {attempt} has not begun after {LIMIT_SECONDS} s")
        time.sleep(0.001)
    rows = [file.read_text().split() for file in files]
    return [int(row[0]) for row in rows], max(float(row[1]) for row in rows), [
        int(row[2]) / 1024 for row in rows]


def measure(launcher, ranks, kills):
    """Runs a job whose last rank is killed several times."""
    folder = pathlib.Path(tempfile.mkdtemp())
    flags = [f"--nproc-per-node={ranks}", f"--max-restarts={kills}"]
    # Otherwise torchrun keeps its store over a restart, and workers find the addresses of dead ones.
    environment = dict(os.environ, OMP_NUM_THREADS="1", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    began = time.monotonic()
    with open(folder / "log", "w") as log:
        job = subprocess.Popen(launcher.command + flags + [str(PROGRAM), str(folder)],
                               env=environment, stdout=log, stderr=log)
    try:
        pids, ended, memory = await_ranks(job, folder, 0, ranks)
        launcher.starts.append(ended - began)
        launcher.memory.append(statistics.mean(memory))
        for attempt in range(1, kills + 1):
            killed = time.monotonic()
            os.kill(pids[-1], signal.SIGKILL)
            pids, ended, _ = await_ranks(job, folder, attempt, ranks)
            launcher.restarts.append(ended - killed)
    except Failed:
        sys.stderr.write((folder / "log").read_text()[-4000:])
        raise
    finally:
        job.terminate()
        job.wait()
        shutil.rmtree(folder)


def compare(arguments):
    environment = arguments.venv / "bin"
    rankrun = [str(arguments.rankrun), "--restart-pause=0"]  # the kills follow each other
    launchers = [Launcher("torchrun", [str(environment / "torchrun"), "--standalone"]),
                 Launcher("rankrun", rankrun),
                 Launcher("rankrun --preload auto", rankrun + ["--preload=auto"])]
    os.environ["PYTHON_EXEC"] = str(environment / "python")
    rounds, kills = (1, 1) if arguments.quick else (arguments.rounds, 3)
    for _ in range(rounds):
        for launcher in launchers:
            measure(launcher, arguments.ranks, kills)
    print(f"{arguments.ranks} ranks, medians of {rounds} starts and {rounds * kills} restarts")
    print(f"  {'':<24} {'first all_reduce':>17} {'after SIGKILL':>15} {'PSS of a rank':>15}")
    for one in launchers:
        print(f"  {one.name:<24} {statistics.median(one.starts):>15.2f} s "
              f"{statistics.median(one.restarts):>13.2f} s "
              f"{statistics.median(one.memory):>11.0f} MiB")
    torchrun, _, preload = launchers
    ratio = statistics.median(torchrun.starts) / statistics.median(preload.starts)
    restart = statistics.median(preload.restarts)
    judge("start with --preload, torchrun's time / ours", f"{ratio:.2f}", f">= {MIN_START_RATIO}",
          None if arguments.quick else ratio >= MIN_START_RATIO)
    judge("restart with --preload", f"{restart:.2f} s", f"< {MAX_RESTART_SECONDS} s",
          None if arguments.quick else restart < MAX_RESTART_SECONDS)


def add_options(parser):
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="with PyTorch")
    parser.add_argument("--rankrun", type=pathlib.Path, required=True)


comparison.run("preload.sh", __doc__, compare, add_options)
