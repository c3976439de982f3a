#!/usr/bin/env python3
"""Runs cases of all cases.json and judges what rankrun said about them. See README.md.

    run.py --build build/release            all cases
    run.py --build build/release C001 C017  some of them
    run.py --jobs 4 --at-least 95           four at a time; passes with 95 % right
    run.py --quarter 2                      a quarter of the cases, 0 to 3

Exit code: 0 if all were named right, or as many as --at-least asks for, 1 if not, 77 if all were
skipped. With --jobs, a case that is missed runs once more, alone.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
CASES = [["cases.json"], ["second", "cases.json"], ["third", "cases.json"],
         ["fourth", "cases.json"], ["fifth", "cases.json"], ["sixth", "cases.json"],
         ["seventh", "cases.json"]]
LIMIT = 30.0  # seconds of a case; PyTorch alone takes 15 s to start on a loaded machine
LIMIT_WITH_TORCH = 90.0
SKIPPED = 77
PR_SET_CHILD_SUBREAPER = 36


class Skip(Exception):
    """A requirement of the case is missing here."""


class Bench:
    """Where the programs are, and what this machine can do."""

    def __init__(self, build, compiled, venv):
        self.rankrun = os.path.join(build, "bin", "rankrun")
        self.compiled = compiled
        self.python = os.path.join(venv, "bin", "python3")
        self._help = None

    def help(self):
        if self._help is None:
            result = subprocess.run([self.rankrun, "--help"], capture_output=True, text=True,
                                    timeout=10)
            self._help = result.stdout
        return self._help

    def require(self, name):
        if name == "torch" and not os.path.exists(self.python):
            raise Skip(f"no PyTorch at {self.python}")
        if name == "root" and os.geteuid() != 0:
            raise Skip("not root")
        if name == "hang" and "--hang-timeout" not in self.help():
            raise Skip("rankrun has no --hang-timeout")
        if name == "mount" and subprocess.run(["unshare", "--mount", "true"], check=False,
                                              stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("no rights to make a mount namespace")
        if name == "cgroup":
            os.rmdir(memory_cgroup())
        if name == "setpriv" and shutil.which("setpriv") is None:
            raise Skip("no setpriv")
        if name == "sanitizer" and not os.path.exists(os.path.join(self.compiled, "sanitized")):
            raise Skip("the compiler has no sanitizers")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def memory_cgroup():
    """Makes a memory cgroup of 64 MiB; returns its folder."""
    own = ""
    with open("/proc/self/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                own = "/sys/fs/cgroup/memory" + path
            elif controllers == "" and not own:
                own = "/sys/fs/cgroup" + path
    folder = os.path.join(own, f"corpus-{os.getpid()}")
    try:
        os.mkdir(folder)
        for name in ("memory.limit_in_bytes", "memory.max"):
            if os.path.exists(os.path.join(folder, name)):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(str(64 << 20))
                return folder
        os.rmdir(folder)
    except OSError as error:
        raise Skip(f"no memory cgroup can be made: {error}") from error
    raise Skip("cgroups have no limit of memory here")


class Run:
    """One run of a case: its processes, and what they have left."""

    def __init__(self, case, bench):
        self.case = case
        self.bench = bench
        self.folder = tempfile.mkdtemp(prefix="corpus-")
        self.cgroup = None
        self.nodes = []
        self.killed = set()  # nodes of which the whole rankrun was killed
        self.limit = LIMIT_WITH_TORCH if "torch" in case.get("requires", []) else LIMIT
        self.end = time.monotonic() + self.limit
        self.late = False

    # --- start -----------------------------------------------------------------

    def word(self, text):
        values = {"folder": self.folder, "compiled": self.bench.compiled,
                  "programs": os.path.join(HERE, "programs")}
        return re.sub(r"\{(folder|compiled|programs)\}", lambda match: values[match[1]], text)

    def command(self):
        words = [self.word(word) for word in self.case["run"]]
        for place in (os.path.join(HERE, "programs"), self.bench.compiled):
            if os.path.isfile(os.path.join(place, words[0])):
                words[0] = os.path.join(place, words[0])
        return words

    def make_files(self):
        for name, file in self.case.get("files", {}).items():
            path = os.path.join(self.folder, name)
            if "copy" in file:
                shutil.copy(os.path.join(HERE, "programs", file["copy"]), path)
            elif file.get("folder"):
                os.mkdir(path)
            else:
                with open(path, "w") as out:
                    out.write(file["text"])
            os.chmod(path, int(file.get("mode", "0755"), 8))

    def environment(self):
        # Nothing of a job around this one, and no colours.
        keep = {name: value for name, value in os.environ.items()
                if not name.startswith(("RANKRUN_", "PET_", "SLURM_", "TORCHELASTIC_", "MASTER_"))}
        keep.update({"CORPUS": self.folder, "TMPDIR": self.folder, "OMP_NUM_THREADS": "1",
                     "TORCH_CPP_LOG_LEVEL": "ERROR", "RES_OPTIONS": "timeout:1 attempts:1",
                     "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1",
                     "GLOO_SOCKET_IFNAME": "lo"})
        if "torch" in self.case.get("requires", []):
            keep["PYTHON_EXEC"] = self.bench.python
        keep.update(self.case.get("variables", {}))
        return keep

    def enter_cgroup(self):
        with open(os.path.join(self.cgroup, "cgroup.procs"), "w") as file:
            file.write("0")

    def start(self):
        self.make_files()
        if "cgroup" in self.case.get("requires", []):
            self.cgroup = memory_cgroup()
        count = self.case["nodes"]
        port = free_port()
        for node in range(count):
            flags = [f"--nproc-per-node={self.case['ranks'] // count}",
                     f"--events={self.folder}/events.{node}"]
            if count > 1:
                flags += [f"--nnodes={self.case.get('nnodes', count)}", "--rdzv-backend=c10d",
                          f"--rdzv-endpoint=127.0.0.1:{port}", f"--node-rank={node}",
                          f"--rdzv-conf=is_host={int(node == 0)}", "--node-timeout=10",
                          "--insecure"]
            flags += [self.word(flag) for flag in self.case.get("flags", [])]
            with open(f"{self.folder}/out.{node}", "wb") as out, \
                    open(f"{self.folder}/err.{node}", "wb") as err:
                self.nodes.append(subprocess.Popen(
                    [self.bench.rankrun, *flags, *self.command()], stdin=subprocess.DEVNULL,
                    stdout=out, stderr=err, env=self.environment(), cwd=self.folder,
                    preexec_fn=self.enter_cgroup if self.cgroup else None))

    # --- what happens from outside ---------------------------------------------

    def wait_until(self, condition):
        while not condition():
            if time.monotonic() > self.end:
                return False
            if all(node.poll() is not None for node in self.nodes):
                return False
            time.sleep(0.005)
        return True

    def ready_file(self, rank):
        return os.path.join(self.folder, f"ready.0.{rank}")

    def pids(self, target):
        kind, number = target.split()
        if kind == "rank":
            return [int(self.text(f"ready.0.{number}"))]
        guardian = self.nodes[int(number)].pid
        children = self.text(f"/proc/{guardian}/task/{guardian}/children").split()
        agents = [int(child) for child in children
                  if self.text(f"/proc/{child}/comm") == "rankrun-agent\n"]
        if kind == "agent":
            return agents
        self.killed.add(int(number))
        return [guardian] + (agents if kind == "node" else [])

    def act(self):
        actions = self.case.get("actions", [])
        if not actions:
            return
        ranks = range(self.case["ranks"])
        if not self.wait_until(lambda: all(os.path.exists(self.ready_file(r)) for r in ranks)):
            return
        # All targets are looked up first: the first signal changes what can be seen.
        signals = [(pid, action) for action in actions for pid in self.pids(action["target"])]
        for pid, action in signals:
            os.kill(pid, getattr(signal, "SIG" + action["signal"]))

    def finish(self):
        self.late = not self.wait_until(
            lambda: all(node.poll() is not None for node in self.nodes)) and any(
                node.poll() is None for node in self.nodes)
        if self.late:
            for node in self.nodes:
                if node.poll() is None:
                    node.send_signal(signal.SIGINT)
            time.sleep(0.2)
            for node in self.nodes:
                if node.poll() is None:
                    node.send_signal(signal.SIGINT)
        for node in self.nodes:
            node.wait(timeout=20)

    def orphans(self):
        """Kills and returns what the job has left: this process adopts it."""
        left = []
        end = time.monotonic() + 2.0  # the kernel may still tear killed processes down
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return left
            if pid == 0 and time.monotonic() > end:
                me = os.getpid()
                left = self.text(f"/proc/{me}/task/{me}/children").split()
                names = [f"{pid} ({self.text(f'/proc/{pid}/comm').strip()})" for pid in left]
                for child in left:
                    os.kill(int(child), signal.SIGKILL)
                    os.waitpid(int(child), 0)
                return names
            if pid == 0:
                time.sleep(0.005)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.cgroup:
            try:
                os.rmdir(self.cgroup)
            except OSError:
                print(f"{self.cgroup} cannot be removed", file=sys.stderr)

    # --- what it has left --------------------------------------------------------

    def text(self, name):
        try:
            with open(os.path.join(self.folder, name), errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def events(self, node):
        return [json.loads(line) for line in self.text(f"events.{node}").splitlines()]


# --- judgement -----------------------------------------------------------------------

def block_of_cause(text):
    """Returns the lines of the cause in a report: its line, and those indented below it."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if line.startswith("  cause:"):
            end = start + 1
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            return lines[start:end]
    return []


def ranks_named(line):
    """Returns the ranks that the line of a cause blames."""
    match = re.match(r"  cause: ranks? ([0-9, -]+)", line)
    if not match:
        return []
    ranks = []
    for part in re.split(r", *| and ", match[1].strip(" ,-")):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


class Judge:
    def __init__(self, run):
        self.run = run
        self.case = run.case
        self.faults = []

    def fault(self, text):
        self.faults.append(text)

    def culprits(self):
        cause = self.case.get("cause")
        if not isinstance(cause, dict):
            return []
        rank = cause["rank"]
        return rank if isinstance(rank, list) else [rank]

    def living_nodes(self):
        return [node for node in range(self.case["nodes"]) if node not in self.run.killed]

    def judge(self):
        if self.run.late:
            self.fault(f"it did not end within {self.run.limit:.0f} s")
        for node in self.living_nodes():
            self.judge_node(node)
        self.judge_texts()
        return self.faults

    def judge_node(self, node):
        code = self.run.nodes[node].returncode
        codes = self.case["exit"] if isinstance(self.case["exit"], list) else [self.case["exit"]]
        if code not in codes:
            self.fault(f"node {node}: exit code {code} instead of {codes}")
        events = self.run.events(node)
        end = next((event for event in events if event["event"] == "job_ended"), None)
        if end is None:
            if not self.case.get("refused"):
                self.fault(f"node {node}: no job_ended")
            return
        # Their numbers count those of the budget; free ones do not grow them.
        used = max((event.get("number", 0) for event in events
                    if event["event"] in ("restart", "agent_restarted")), default=0)
        if used != self.case["restarts"]:
            self.fault(f"node {node}: {used} restarts are used up instead of "
                       f"{self.case['restarts']}")
        attempts = [event["attempt"] for event in events if event["event"] == "attempt_started"]
        if end["restarts"] not in (used, max(attempts, default=0)):
            self.fault(f"node {node}: job_ended counts {end['restarts']} restarts")
        reports = [event for event in events if event["event"] == "report"]
        if not self.case.get("cause") and reports:
            self.fault(f"node {node}: a report although nothing failed")
        # An agent that was started again has written no report before its end.
        needed = self.case.get("reports", 1 if self.case.get("cause") else 0)
        if len(reports) < needed:
            self.fault(f"node {node}: {len(reports)} reports instead of {needed}")
        for report in reports:
            self.judge_report(node, report)
        self.judge_decisions(node, events, reports, end)

    def judge_report(self, node, report):
        where = f"node {node}, attempt {report.get('attempt')}"
        cause, block = report["cause"], block_of_cause(report["text"])
        first = block[0] if block else ""
        if isinstance(self.case["cause"], dict):
            if cause.get("rank") not in self.culprits():
                self.fault(f"{where}: the event blames {cause.get('rank', cause)} instead of "
                           f"{self.culprits()}")
            named = ranks_named(first)
            if not named or not set(named) <= set(self.culprits()):
                self.fault(f"{where}: the text blames {named or first} instead of "
                           f"{self.culprits()}")
        elif "rank" in cause:
            self.fault(f"{where}: the event blames rank {cause['rank']} instead of the "
                       f"{self.case['cause']}")
        elif self.case["cause"] not in cause["why"]:
            self.fault(f"{where}: {cause['why']!r} does not say {self.case['cause']!r}")
        for word in self.case.get("words", []):
            if word not in "\n".join(block):
                self.fault(f"{where}: the cause does not say {word!r}")
        # The event of the same report says the same as its text.
        if cause["why"].split(";")[0].split(", was in")[0] not in first:
            self.fault(f"{where}: the event's why is {cause['why']!r}, the text's line {first!r}")

    def judge_decisions(self, node, events, reports, end):
        for event in events:
            if event["event"] == "restart":
                self.judge_why(f"node {node}: restart", event["why"])
        if end["exit_code"] != 0 if "exit_code" in end else True:
            self.judge_why(f"node {node}: job_ended", end.get("why", ""))
        counted = [event for event in events
                   if event["event"] == "restart" and not event.get("is_free")]
        texts = "\n".join(report["text"] for report in reports)
        for event in counted:
            line = f"restart {event['number']} of {event['of']}"
            if line not in texts and reports:
                self.fault(f"node {node}: the event says {line!r}, no report does")

    def judge_why(self, where, why):
        blamed = [int(rank) for rank in re.findall(r"^rank (\d+)", why)]
        wrong = [rank for rank in blamed if rank not in self.culprits()]
        if wrong:
            self.fault(f"{where} blames rank {wrong[0]}: {why!r}")

    def judge_texts(self):
        for node in self.living_nodes():
            err = self.run.text(f"err.{node}")
            for line in err.split("\n"):
                if line.startswith("  cause:"):
                    wrong = [rank for rank in ranks_named(line) if rank not in self.culprits()]
                    if wrong:
                        self.fault(f"node {node} prints: {line.strip()}")
        everything = "\n".join(self.run.text(f"err.{node}") for node in self.living_nodes())
        for word in self.case.get("prints", []):
            if word not in everything:
                self.fault(f"standard error does not say {word!r}")
        for word in self.case.get("prints_not", []):
            if word in everything:
                self.fault(f"standard error says {word!r}")
        if "notice" in self.case:
            self.judge_notice(everything)

    def judge_notice(self, text):
        """A notice names the rank that others wait for, and says what it does instead."""
        notice = self.case["notice"]
        lines = [line for line in text.split("\n")
                 if line.startswith("rankrun: ") and re.search(r"\bwaits?\b", line)]
        good = [line for line in lines
                if re.search(notice["for"], line) and all(w in line for w in notice["words"])]
        if not good:
            self.fault(f"no notice {notice}, but {lines or 'none'}")


def run_case(case, bench):
    """Returns None for success, or the block that says what went wrong."""
    for requirement in case.get("requires", []):
        bench.require(requirement)
    run = Run(case, bench)
    try:
        run.start()
        run.act()
        run.finish()
        left = run.orphans()
        faults = Judge(run).judge()
        if left and not run.killed:
            faults.append(f"left behind: {', '.join(left)}")
        if not faults:
            return None
        block = [f"{case['id']}: {case['what']}", f"  run: {' '.join(case['run'])}"]
        block += [f"  MISS: {fault}" for fault in faults]
        for node in range(len(run.nodes)):
            for name in (f"err.{node}", f"out.{node}"):
                lines = run.text(name).split("\n")[-45:]
                block += [f"  {name} | {line[:300]}" for line in lines if line]
            block += [f"  events.{node} | {line[:400]}" for line in
                      run.text(f"events.{node}").split("\n") if re.search(
                          '"event":"(restart|stop_begun|job_ended|node_lost|agent_restarted)', line)]
        return "\n".join(block)
    finally:
        for node in run.nodes:
            if node.poll() is None:
                node.kill()
                node.wait()
        run.orphans()
        run.close()


def run_alone(case, options):
    """Runs a case in a process of its own; returns its exit code and output."""
    command = [sys.executable, os.path.abspath(__file__), "--build", options.build,
               "--venv", options.venv, case["id"]]
    for name, values in (("--compiled", [options.compiled]), ("--cases", options.cases or [])):
        for value in values:
            command += [name, value] if value else []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def run_in_parallel(chosen, options):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip([case["id"] for case in chosen],
                           pool.map(lambda case: run_alone(case, options), chosen)))
    again = [case for case in chosen if results[case["id"]][0] not in (0, SKIPPED)]
    for case in again:
        print(f"{case['id']} runs once more after:\n{results[case['id']][1]}", flush=True)
        results[case["id"]] = run_alone(case, options)
    missed = [id for id, (code, _) in results.items() if code not in (0, SKIPPED)]
    right = sum(code == 0 for code, _ in results.values())
    for id in missed:
        print(results[id][1])
    print(f"{right} right, {len(missed)} missed {missed or ''}, "
          f"{len(chosen) - right - len(missed)} skipped or known misses, {len(again)} ran twice")
    judged = right + len(missed)
    if not judged:
        return SKIPPED
    return 0 if right >= judged * options.at_least / 100 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv"))
    parser.add_argument("--compiled", help="folder of compiled programs, default: BUILD/corpus")
    parser.add_argument("--cases", action="append", help="file of cases; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--at-least", type=float, default=100.0, metavar="PERCENT")
    parser.add_argument("--quarter", type=int, choices=range(4),
                        default=os.environ.get("RANKRUN_CORPUS_QUARTER") or None)
    parser.add_argument("ids", nargs="*", metavar="ID")
    options = parser.parse_args()
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("prctl failed")
    cases = []
    for path in options.cases or [os.path.join(HERE, *name) for name in CASES]:
        with open(path) as file:
            cases += json.load(file)
    unknown = set(options.ids) - {case["id"] for case in cases}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    chosen = [case for case in cases if not options.ids or case["id"] in options.ids]
    if options.quarter is not None and not options.ids:
        chosen = chosen[options.quarter::4]
    if options.jobs > 1:
        return run_in_parallel(chosen, options)
    build = os.path.abspath(options.build)
    bench = Bench(build, os.path.abspath(options.compiled or os.path.join(build, "corpus")),
                  os.path.abspath(options.venv))
    right, missed, known_misses, skipped = 0, [], [], []
    for case in chosen:
        start = time.monotonic()
        try:
            block = run_case(case, bench)
        except Skip as reason:
            skipped.append(case["id"])
            print(f"{case['id']}: skipped: {reason}", flush=True)
            continue
        if block is None:
            right += 1
            known = ", no longer missed: remove known_miss" if "known_miss" in case else ""
            print(f"{case['id']}: right{known}, {time.monotonic() - start:.1f} s: {case['what']}",
                  flush=True)
        elif "known_miss" in case:
            known_misses.append(case["id"])
            print(f"{block}\n  known miss: {case['known_miss']}", flush=True)
        else:
            missed.append(case["id"])
            print(block, flush=True)
    print(f"{right} right, {len(missed)} missed {missed or ''}, "
          f"{len(known_misses)} known misses {known_misses or ''}, {len(skipped)} skipped")
    if missed:
        return 1
    return SKIPPED if chosen and not right else 0


if __name__ == "__main__":
    sys.exit(main())
