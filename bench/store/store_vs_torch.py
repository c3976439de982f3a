"""Measures rankrun's store server beside PyTorch's and beside store_echo. See store_vs_torch.sh.

The servers take turns, and a ratio is one of neighbours; then the median of ratios is taken.
"""

import json
import resource
import statistics
import subprocess
import sys

import comparison
import store_servers
from comparison import Failed
from store_servers import (BIN, LOCAL_NAMES, SLOW_NAMES, SLOW_NAMES_SECONDS, Servers,
                           SlowNameserver)

PATIENCE_SECONDS = 120

LARGEST_ECHO_RATIO = 1.10
LEAST_PIPELINE_RATIO = 3.0
LARGEST_P99_MS = 10
MEMORY_KIB, MEMORY_KIB_PER_CONNECTION = 10 * 1024, 2


class Plan:
    """Amount of measurement."""

    def __init__(self, quick):
        self.rounds = 1 if quick else 7
        self.seconds = 0.2 if quick else 1
        self.connections = [64, 1000, 4000]
        self.operations = ["get", "set", "add"]
        self.pipeline = 32
        self.clients = 4000
        self.slow_clients = 4 if quick else 64
        self.slow_rounds = 1 if quick else 3
        self.waited_keys = 100_000
        self.peers = ["rankrun", "PyTorch"] if store_servers.has_torch() else ["rankrun"]


def bench(server, command, *options):
    """Runs store_bench once and returns its figures."""
    words = [*store_servers.pinned(1), BIN / "store_bench", command, "--port", server.port,
             "--server-pid", server.pid, "--patience", PATIENCE_SECONDS, "--json", *options]
    words += ["--echo"] if server.name == "echo" else []
    limit = 10 * PATIENCE_SECONDS
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              check=False, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"measure {server.name}: store_bench {command} has not ended within {limit} s; "
                     f"the server's errors: {server.errors()}") from error
    if done.returncode != 0:
        raise Failed(f"measure {server.name}: {done.stderr.strip()}; "
                     f"the server's errors: {server.errors()}")
    return json.loads(done.stdout)


def alternate(servers, rounds, measure):
    """Measures each server `rounds` times in turn. Returns {name: [figure, ...]}."""
    figures = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            figures[name].append(measure(server))
    return figures


def median(figures, name):
    return statistics.median(figures[name]) if name in figures else None


def ratio(figures, above, below):
    """Returns the median of the rounds' ratios, or None without that server."""
    if above not in figures or below not in figures:
        return None
    return statistics.median(a / b for a, b in zip(figures[above], figures[below]))


def text(number, digits=2):
    return "-" if number is None else f"{number:.{digits}f}"


def row(*cells):
    print("  " + "".join(f"{cell:<36}" if i == 0 else f"{cell:>16}"
                         for i, cell in enumerate(cells)), flush=True)


def head(title, *cells):
    print(f"== {title}")
    row(*cells)


def load_options(plan, operation, connections, pipeline=1):
    return ["--operation", operation, "--connections", connections, "--pipeline", pipeline,
            "--seconds", plan.seconds]


def measure_cpu(plan):
    """One request at a time on each connection. Returns all ratios to echo and to PyTorch."""
    head(f"server CPU per request [us], 64-byte values, medians of {plan.rounds}",
         "", "echo", "rankrun", "PyTorch", "rankrun/echo", "rankrun/PyTorch")
    to_echo, to_torch = [], []
    for connections in plan.connections:
        with Servers(["echo", *plan.peers], LOCAL_NAMES) as servers:
            for operation in plan.operations:
                options = load_options(plan, operation, connections)
                figures = alternate(servers, plan.rounds, lambda server: bench(
                    server, "load", *options)["server_cpu_us_per_request"])
                to_echo.append(ratio(figures, "rankrun", "echo"))
                to_torch.append(ratio(figures, "rankrun", "PyTorch"))
                row(f"{operation}, {connections}",
                    *(text(median(figures, name)) for name in ("echo", "rankrun", "PyTorch")),
                    text(to_echo[-1], 3), text(to_torch[-1], 3))
    return to_echo, [value for value in to_torch if value is not None]


def measure_pipelines(plan):
    """Many requests per send. Returns the ratios of rates."""
    head(f"rate [1000 requests/s], {plan.pipeline} per send, medians of {plan.rounds}",
         "", "rankrun", "PyTorch", "rankrun/PyTorch")
    ratios = []
    for connections in plan.connections:
        with Servers(plan.peers, LOCAL_NAMES) as servers:
            for operation in plan.operations:
                options = load_options(plan, operation, connections, plan.pipeline)
                rates = alternate(servers, plan.rounds, lambda server: bench(
                    server, "load", *options)["requests_per_second"] / 1000)
                ratios.append(ratio(rates, "rankrun", "PyTorch"))
                row(f"{operation}, {connections}", text(median(rates, "rankrun"), 0),
                    text(median(rates, "PyTorch"), 0), text(ratios[-1]))
    return [value for value in ratios if value is not None]


def measure_storm(plan, clients, rounds, files, names):
    """All clients of a job at once. Returns the ratio of times."""
    head(f"storm of {clients} clients, {names}, medians of {rounds}",
         "", "rankrun", "PyTorch", "rankrun/PyTorch")
    with Servers(plan.peers, files) as servers:
        figures = alternate(servers, rounds,
                            lambda server: bench(server, "storm", "--clients", clients))
    result = None
    for label, key in (("first connect to last release [ms]", "ms"),
                       ("server CPU per client [us]", "server_cpu_us_per_client")):
        values = {name: [f[key] for f in all_of] for name, all_of in figures.items()}
        quotient = ratio(values, "rankrun", "PyTorch")
        result = quotient if key == "ms" else result
        row(label, text(median(values, "rankrun")), text(median(values, "PyTorch")),
            text(quotient, 4))
    return result


def measure_slow_names(plan):
    """Measures the storm with a slow nameserver. Returns the ratio of times, or None if skipped."""
    if not store_servers.mount_namespace():
        print("skipped: the storm with a slow resolver (no private mounts are allowed)")
        return None
    try:
        with SlowNameserver():
            return measure_storm(plan, plan.slow_clients, plan.slow_rounds, SLOW_NAMES,
                                 f"{SLOW_NAMES_SECONDS} s for each look-up of a name")
    except PermissionError:
        print("skipped: the storm with a slow resolver (port 53 is not available)")
        return None


def measure_memory(plan):
    """Resident memory of fresh servers. Returns rankrun's in KiB."""
    head(f"resident memory [KiB], {plan.clients} connections with a 64-byte value each",
         "", "before", "all open", "after requests", "KiB/connection")
    options = load_options(plan, "get", plan.clients)
    most = 0
    with Servers(["echo", *plan.peers], LOCAL_NAMES) as servers:
        for name, server in servers.items():
            figures = bench(server, "load", *options)
            before, opened, end = (figures[f"server_kib_{when}"]
                                   for when in ("before", "open", "end"))
            row(name, before, opened, end, text((max(opened, end) - before) / plan.clients))
            most = max(opened, end) if name == "rankrun" else most
    return most


def measure_waits(plan):
    """Measures the cost of waits for other requests, and the cost of waking them."""
    head(f"waits, medians of {plan.rounds}", "", "rankrun", "PyTorch", "rankrun/PyTorch")
    with Servers(plan.peers, LOCAL_NAMES) as servers:
        waits = alternate(servers, plan.rounds, lambda server: bench(
            server, "waits", "--keys", plan.waited_keys, "--seconds", plan.seconds))
        wakes = alternate(servers, plan.rounds, lambda server: bench(
            server, "wake", "--waiters", plan.clients))
    for figures, label, key in (
            (waits, "SET+PING, p50 with/without", "latency_ratio"),
            (waits, "SET+PING, CPU with/without", "cpu_ratio"),
            (waits, f"register {plan.waited_keys} [ms]", "register_ms"),
            (waits, f"release {plan.waited_keys} [ms]", "release_ms"),
            (wakes, f"wake {plan.clients} of a key [ms]", "ms"),
            (wakes, "server CPU/waiter [us]", "server_cpu_us_per_waiter")):
        values = {name: [f[key] for f in all_of] for name, all_of in figures.items()}
        row(label, text(median(values, "rankrun")), text(median(values, "PyTorch")),
            text(ratio(values, "rankrun", "PyTorch")))


def measure_hostile(plan):
    """Measures the latency of good clients among hostile ones. Returns the p99 in ms."""
    head(f"latency of GET on 64 connections [ms], medians of {plan.rounds}",
         "", "p50", "p99", "max", "server KiB")
    options = load_options(plan, "get", 64)
    result = None
    with Servers(["rankrun"], LOCAL_NAMES) as servers:
        for label, crowd in (("alone", None), ("among 500 slow and hostile clients", True)):
            hostile = start_hostile(servers["rankrun"]) if crowd else None
            rounds = [bench(servers["rankrun"], "load", *options) for _ in range(plan.rounds)]
            if hostile:
                hostile.communicate()  # it ends with its standard input
            p50, p99, most = (statistics.median(figures[key] for figures in rounds) / 1000
                              for key in ("us_p50", "us_p99", "us_max"))
            row(label, text(p50, 3), text(p99, 3), text(most, 3), rounds[-1]["server_kib_end"])
            result = p99
    return result


def start_hostile(server):
    words = [*store_servers.pinned(1), sys.executable, store_servers.ROOT / "bench" / "store" / "store_hostile.py",
             server.port]
    hostile = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    if hostile.stdout.readline().strip() != "ready":
        hostile.kill()
        raise Failed(f"measure rankrun: the hostile clients could not connect; "
                     f"the server's errors: {server.errors()}")
    return hostile


def judge(what, measured, target, met):
    comparison.judge(what, text(measured, 3), target, None if measured is None else met(measured))


def measure_all(plan):
    to_echo, to_torch = measure_cpu(plan)
    pipelines = measure_pipelines(plan)
    storm = measure_storm(plan, plan.clients, plan.rounds, LOCAL_NAMES, "local names")
    slow = measure_slow_names(plan)
    memory = measure_memory(plan)
    measure_waits(plan)
    hostile_p99 = measure_hostile(plan)
    most_kib = MEMORY_KIB + MEMORY_KIB_PER_CONNECTION * plan.clients
    print("== summary")
    judge("server CPU per request, rankrun/echo, the highest", max(to_echo),
          f"<= {LARGEST_ECHO_RATIO}", lambda r: r <= LARGEST_ECHO_RATIO)
    judge("server CPU per request, rankrun/PyTorch, the highest", max(to_torch, default=None),
          "< 1", lambda r: r < 1)
    judge(f"rate, {plan.pipeline} per send, rankrun/PyTorch, the lowest",
          min(pipelines, default=None), f">= {LEAST_PIPELINE_RATIO}",
          lambda r: r >= LEAST_PIPELINE_RATIO)
    judge(f"storm of {plan.clients}, rankrun/PyTorch", storm, "< 1", lambda r: r < 1)
    judge(f"storm of {plan.slow_clients}, slow names, rankrun/PyTorch", slow, "< 1",
          lambda r: r < 1)
    judge(f"memory at {plan.clients} connections [KiB]", memory, f"< {most_kib}",
          lambda kib: kib < most_kib)
    judge("p99 among hostile clients [ms]", hostile_p99, f"< {LARGEST_P99_MS}",
          lambda ms: ms < LARGEST_P99_MS)


def compare(arguments):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the servers inherit it
    if not store_servers.has_torch():
        print(f"skipped: PyTorch's server (no {store_servers.VENV}; scripts/venv.sh makes it)")
    if not store_servers.mount_namespace():
        print("note: no private mounts are allowed, names are looked up as on this machine")
    if not store_servers.cores():
        print("note: there is one core only, servers and load share it")
    measure_all(Plan(arguments.quick))


if __name__ == "__main__":
    comparison.run("store_vs_torch.sh", __doc__, compare)
