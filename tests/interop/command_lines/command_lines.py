"""command_lines.py RANKRUN: the same command lines for PyTorch's torchrun and for
rankrun under its name. Their workers must be given the same, and what one
refuses the other must."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "worker.py")
THEIRS = os.path.join(os.path.dirname(sys.executable), "torchrun")

GOOD = [
    (["--nproc-per-node=2", WORKER, "a", "--nproc-per-node", "9"], {}),
    (["--nproc_per_n", "2", "--max-restart=3", "--", WORKER, "$local_rank", "a${local_rank}b",
      "a$$b", "$x$", "$local_ranks", "$$local_rank"], {}),
    ([WORKER, "--", "x", "--", "y"], {}),
    (["--", WORKER, "--", "x"], {}),
    (["--standalon", "-m", "worker", "-m"], {}),
    (["--no-python", "--nproc-per-node", "2", sys.executable, WORKER, "${local_rank}"], {}),
    (["--run-path", WORKER, "p", "$local_rank"], {}),
    (["--run-path", "--no_python", "worker.py", "p"], {}),
    ([WORKER], {"PET_NPROC_PER_NODE": "2", "PET_MAX_RESTARTS": "1", "PET_STANDALONE": "1"}),
    (["--nproc-per-node=1", WORKER], {"PET_NPROC_PER_NODE": "2", "PET_LOG_DIR": ""}),
    (["--rdzv-id=job", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
      "--rdzv-conf='join_timeout=5,timeout=5'", "--nnodes=1:1", WORKER], {"WITH_RUN_ID": "1"}),
]
BAD = [
    ([], {}),
    (["--nonsense", WORKER], {}),
    (["--max-restarts=x", WORKER], {}),
    (["--rdzv", "x", WORKER], {}),
    (["--start-method=frok", WORKER], {}),
    ([WORKER], {"PET_MASTER_PORT": "http"}),
]


def run(program, arguments, variables):
    """The exit code, and what each worker was given."""
    with tempfile.TemporaryDirectory() as given:
        environment = dict(os.environ, GIVEN=given, PYTHON_EXEC=sys.executable, **variables)
        ended = subprocess.run([program] + arguments, env=environment, cwd=HERE, text=True,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=200)
        texts = [open(os.path.join(given, name)).read() for name in sorted(os.listdir(given))]
        return ended.returncode, texts, ended.stderr


def compare(ours, arguments, variables, bad):
    theirs = run(THEIRS, arguments, variables)
    mine = run(ours, arguments, variables)
    wanted = 2 if bad else 0
    if theirs[0] == mine[0] == wanted and theirs[1] == mine[1] and bool(mine[1]) != bad:
        return True
    print(f"{arguments} {variables}\n  torchrun: {theirs}\n  rankrun:  {mine}")
    return False


def main():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        ours = os.path.join(folder, "torchrun")
        os.symlink(os.path.abspath(sys.argv[1]), ours)
        lines = [(line, False) for line in GOOD] + [(line, True) for line in BAD]
        same = list(pool.map(lambda item: compare(ours, *item[0], item[1]), lines))
    print(f"{sum(same)} of {len(same)} command lines have the same meaning")
    sys.exit(0 if all(same) else 1)


main()
