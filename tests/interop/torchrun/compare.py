"""Runs the same command lines under torchrun and under rankrun started by the name
torchrun, and compares what the workers got, what was printed and which files there are.
What is meant to differ is listed per case; docs/torchrun-compat.md says why.

    compare.py RANKRUN TORCHRUN [CASE...]
"""

import concurrent.futures
import importlib.metadata
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).parent
TELL = str(HERE / "tell.py")
LIMIT_SECONDS = 120

# Values that differ in each run.
RANDOM = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}
# Intended differences: torchrun advertises the machine's full name, which not
# every machine can resolve, and always sets one thread.
MEANT = {"MASTER_ADDR", "OMP_NUM_THREADS"}


@dataclass
class Case:
    name: str
    arguments: list
    variables: dict = field(default_factory=dict)
    compares: str = "told"  # told, printed, files, code
    except_for: set = field(default_factory=lambda: RANDOM | MEANT)
    codes: tuple = (0, 0)  # expected codes of torchrun and of rankrun


@dataclass
class Run:
    code: int
    output: str
    errors: str
    told: list  # one entry per rank and attempt
    files: dict  # path below the run's folder -> content

    def printed(self):
        """Returns the lines of all workers, sorted."""
        return sorted(line for line in self.output.splitlines() if "said" in line)


TWO = ["--nproc-per-node", "2"]
FIXED = RANDOM | MEANT - {"TORCHELASTIC_RUN_ID"}


def dollars():
    """Returns arguments in which torchrun may substitute the local rank, with similar names."""
    chosen = random.Random(7)
    parts = ["$", "{", "}", "local_rank", "local", "_", "s", "9", " ", "é"]
    return ["-" + "".join(chosen.choices(parts, k=chosen.randint(1, 8))) for _ in range(300)]


def cases(python):
    yield Case("one worker by default", [TELL])
    yield Case("two workers", [*TWO, TELL, "a", "b"])
    yield Case("underscores", ["--nproc_per_node=2", "--max_restarts=3", TELL])
    yield Case("abbreviations", ["--nproc-p=2", "--standalon", TELL])
    yield Case("standalone", ["--standalone", *TWO, TELL])
    yield Case("more threads than one are asked for", [*TWO, TELL], {"OMP_NUM_THREADS": "3"},
               except_for=RANDOM | {"MASTER_ADDR"})
    yield Case("one worker keeps its threads", [TELL], except_for=RANDOM | MEANT)
    yield Case("a variable instead of a flag", [TELL], {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "r"})
    yield Case("a flag wins over a variable", ["--role", "flag", TELL], {"PET_ROLE": "variable"})
    yield Case("a switch by a variable", ["true"], {"PET_NO_PYTHON": "1"}, compares="code")
    yield Case("nnodes as a range of one", ["--nnodes", "1:1", *TWO, TELL])
    yield Case("as many as processors", ["--nproc-per-node", "cpu", TELL])
    yield Case("auto without accelerators", ["--nproc-per-node", "auto", TELL])
    yield Case("the id of the job", ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                                     "--rdzv-id", "job7", TELL],
               except_for=RANDOM - {"TORCHELASTIC_RUN_ID"} | MEANT)
    yield Case("the address and port of the master", ["--master-addr", "127.0.0.1",
                                                      "--master-port", "PORT", *TWO, TELL],
               except_for={"TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID",
                           "MASTER_PORT"})
    yield Case("a static endpoint", ["--rdzv-endpoint", "127.0.0.1:PORT", *TWO, TELL],
               except_for={"TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID",
                           "MASTER_PORT"})
    yield Case("unused keys of the rendezvous",
               ["--rdzv-conf='join_timeout=5,last_call_timeout=1,timeout=5'",
                "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", TELL])
    yield Case("a role", ["--role", "trainer", *TWO, TELL])
    yield Case("arguments behind the script belong to it", [TELL, "--nnodes", "3", "-t", "--", "x"])
    yield Case("a double dash before the script", ["--", TELL, "a", "--", "b"])
    yield Case("a double dash after the script", [TELL, "--", "a", "--", "b"])
    yield Case("the local rank in arguments", [*TWO, TELL, "${local_rank}", "x$local_rank",
                                               "$$HOME", "$other", "${rank}"])
    yield Case("other dollars in arguments", [TELL, *dollars()])
    yield Case("a path wins over no Python", ["--run-path", "--no_python", TELL, "$local_rank"],
               except_for=RANDOM | MEANT | {"session", "unbuffered"})
    yield Case("an empty variable", [TELL], {"PET_LOG_DIR": ""})
    yield Case("a module", ["-m", "tell", "a"], {"PYTHONPATH": str(HERE)})
    yield Case("no Python", ["--no-python", python, "-u", TELL, "a"])
    yield Case("by its path", ["--run-path", TELL, "a"], except_for=RANDOM | MEANT | {"session", "unbuffered"})
    yield Case("PYTHON_EXEC", [TELL], {"PYTHON_EXEC": python})
    yield Case("restarts", ["--max-restarts", "2", TELL, "--fail-first", "3"])
    yield Case("GPUs are passed on", [*TWO, TELL], {"CUDA_VISIBLE_DEVICES": "4,5"})
    yield Case("virtual local ranks", ["--virtual-local-rank", *TWO, TELL],
               {"CUDA_VISIBLE_DEVICES": "4, 5"})
    yield Case("virtual local ranks of no list", ["--virtual-local-rank", *TWO, TELL])
    yield Case("signals to handle", ["--signals-to-handle", "SIGTERM,SIGUSR1", TELL])
    yield Case("a store that is not shared", [TELL], {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
               except_for=RANDOM | MEANT | {"TORCHELASTIC_USE_AGENT_STORE"})
    yield Case("other variables of the launcher", [*TWO, TELL],
               {"LOGLEVEL": "INFO", "TORCH_ELASTIC_WORKER_IDENTICAL": "1",
                "TORCHELASTIC_HEALTH_CHECK_PORT": "0"})
    yield Case("async error handling", [TELL], {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"})
    say = [TELL, "--say", "said it", "--warn", "it warned"]
    yield Case("no prefix", [*TWO, *say], compares="printed")
    yield Case("files instead of the console", ["-r", "3", *TWO, *say], compares="files")
    yield Case("files by rank", ["-r", "0:1,1:2", *TWO, *say], compares="files")
    yield Case("files and the console", ["-t", "3", *TWO, *say], compares="files")
    yield Case("tee prints with a prefix", ["-t", "3", *TWO, *say], compares="printed")
    yield Case("tee of one rank", ["-t", "1:3", "-r", "0:1", *TWO, *say], compares="printed")
    yield Case("a prefix of its own", ["-t", "3", "--role", "r", *TWO, *say],
               {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name} ${local_rank} ${rank}> "},
               compares="printed")
    if importlib.metadata.version("torch") >= "2.14":
        template = "--log-line-prefix-template=<${role_name} ${local_rank} ${rank} ${hostname}> "
        yield Case("a prefix by a flag", ["-t", "3", template, *TWO, *say],
                   {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${rank}> "}, compares="printed")
        yield Case("a prefix by its variable", ["-t", "3", *TWO, *say],
                   {"PET_LOG_LINE_PREFIX_TEMPLATE": "<${rank} of ${hostname}> ",
                    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${rank}> "}, compares="printed")
        yield Case("completion for an unknown shell", ["--print-completion", "fish"],
                   compares="code", codes=(2, 2))
    yield Case("one rank on the console", ["-t", "3", "--local-ranks-filter", "1", *TWO, *say],
               compares="printed")
    yield Case("one rank on the console, no files", ["--local-ranks-filter", "1", *TWO, *say],
               compares="printed")
    yield Case("filtered lines", ["-t", "3", "--duplicate-stdout-filters", "said,,x,it",
                                  "--duplicate-stderr-filters", "nothing", *TWO, *say],
               compares="files")
    yield Case("files of each attempt", ["-r", "1", "--max-restarts", "1", TELL, "--fail-first",
                                         "3", "--say", "said it"], compares="files")
    yield Case("no folder", ["--log-dir", "/dev/null", "-t", "3", *TWO, *say], compares="printed")
    yield Case("an unknown flag", ["--no-such-flag", TELL], compares="code", codes=(2, 2))
    yield Case("an ambiguous flag", ["--rdzv", "2", TELL], compares="code", codes=(2, 2))
    yield Case("one flag in two spellings", ["--nproc", "2", TELL], compares="code", codes=(2, 0))
    yield Case("a value that is no number", ["--max-restarts", "x", TELL], compares="code",
               codes=(2, 2))
    yield Case("no script", ["--nproc-per-node", "2"], compares="code", codes=(2, 2))
    yield Case("a bad variable", [TELL], {"PET_MAX_RESTARTS": "x"}, compares="code", codes=(2, 2))
    yield Case("a bad port in a variable", [TELL], {"PET_MASTER_PORT": "http"}, compares="code",
               codes=(2, 2))
    yield Case("an unknown method of starting", ["--start-method=frok", TELL], compares="code",
               codes=(2, 2))
    yield Case("a bad mask", ["-t", "7", TELL], compares="code", codes=(1, 2))
    yield Case("a module without Python", ["-m", "--no-python", "tell"], compares="code",
               codes=(1, 2))
    yield Case("a worker that fails", [TELL, "--exit", "7"], compares="code", codes=(1, 7))
    yield Case("no such program", ["--no-python", "no-such-program"], compares="code",
               codes=(1, 127))


def free_port():
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def files_below(folder):
    """Returns contents by path, without the folder of the run, whose name differs."""
    found = {}
    for path in sorted(folder.glob("*/attempt_*/**/*")):
        name = "/".join(path.relative_to(folder).parts[1:])
        found[name] = None if path.is_dir() else path.read_text()
    # Sorted, because the order among ranks is arbitrary.
    return {name: text and "".join(sorted(text.splitlines(True))) for name, text in found.items()}


def run(launcher, case, python):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arguments = [argument.replace("PORT", str(free_port())) for argument in case.arguments]
        if case.compares == "files":
            arguments = ["--log-dir", str(folder / "logs"), *arguments]
        (folder / "tmp").mkdir()
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "RES_OPTIONS") if name in os.environ}
        variables = {**keep, "TMPDIR": str(folder / "tmp"), "PYTHON_EXEC": python, **case.variables}
        ended = subprocess.run([launcher, *arguments], env=variables, capture_output=True, text=True,
                               timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL, check=False)
        told = [json.loads(part) for part in re.findall(r"TOLD (.*)", ended.stdout)]
        told.sort(key=lambda t: (t["variables"]["TORCHELASTIC_RESTART_COUNT"], t["variables"]["RANK"]))
        return Run(ended.returncode, ended.stdout, ended.stderr, told, files_below(folder / "logs"))


def without(told, names):
    told = {key: value for key, value in told.items() if key not in names}
    told["variables"] = {k: v for k, v in told["variables"].items() if k not in names}
    return told


def differences(case, theirs, ours):
    if (theirs.code, ours.code) != case.codes:
        yield f"exit codes {theirs.code} and {ours.code}, want {case.codes}\n{ours.errors}"
    if case.compares == "told":
        if not theirs.told:
            yield f"torchrun's workers told nothing\n{theirs.errors}"
        if len(theirs.told) != len(ours.told):
            yield f"{len(theirs.told)} workers and {len(ours.told)}"
        for his, mine in zip(theirs.told, ours.told):
            his, mine = without(his, case.except_for), without(mine, case.except_for)
            if his != mine:
                yield f"workers got\n  {his}\n  {mine}"
    if case.compares == "printed" and theirs.printed() != ours.printed():
        yield f"printed\n  {theirs.printed()}\n  {ours.printed()}"
    if case.compares == "files" and theirs.files != ours.files:
        yield f"files\n  {theirs.files}\n  {ours.files}"


def main():
    rankrun, torchrun = sys.argv[1:3]
    python = os.environ["PYTHON_EXEC"]
    with tempfile.TemporaryDirectory() as folder:
        ours = os.path.join(folder, "torchrun")  # the name selects torchrun's behaviour
        os.symlink(os.path.abspath(rankrun), ours)
        failed = 0
        wanted = sys.argv[3:]
        every = [case for case in cases(python) if not wanted or case.name in wanted]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            theirs = list(pool.map(lambda case: run(torchrun, case, python), every))
            mine = list(pool.map(lambda case: run(ours, case, python), every))
        for case, his, my in zip(every, theirs, mine):
            wrong = list(differences(case, his, my))
            failed += bool(wrong)
            print(("FAILED  " if wrong else "same    ") + case.name)
            for text in wrong:
                print("  " + text.replace("\n", "\n  "))
        print(f"{len(every) - failed} of {len(every)} as in torchrun")
        sys.exit(failed > 0)


if __name__ == "__main__":
    main()
