"""AllReduce of float32 by a flat backend beside the hierarchical one. See hierarchy.sh.

The backends take turns, all sizes in each turn; a figure is the median of the turns, and a ratio the
median of the turns' ratios.
"""

import concurrent.futures
import os
import subprocess
from pathlib import Path

import comparison
from comparison import Failed
from figures import Plan, judge_at_least, median, ratio, size_text, text, times_of

BIN = Path("build/release/bin")
NODES = 2
RANKS_PER_NODE = 2
FIRST_ADDRESS = "10.77.0.1"  # of the node with rank 0
BACKENDS = {"flat": os.environ.get("FLAT", "tcp"),
            "hierarchical": os.environ.get("HIERARCHICAL", "hierarchical")}
LEAST_RATIO = 2.0  # flat/hierarchical, at each size


def cores_of(node):
    """Returns the node's share of the cores, as a list for taskset."""
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // NODES
    if share == 0:
        raise Failed(f"measure: there is one core only, {NODES} nodes need one each")
    return ",".join(str(core) for core in cores[node * share:(node + 1) * share])


def command(node, plan):
    """Returns the command of one node: rankrun with a network, a name and processes of its own."""
    host = f"h{node + 1}"
    # Ranks of one PID namespace would be ranks of one host.
    enter = ["ip", "netns", "exec", host, "taskset", "--cpu-list", cores_of(node), "unshare",
             "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             'hostname "$0" && exec "$@"', host]
    job = ["--nnodes", NODES, "--node-rank", node, "--master-addr", FIRST_ADDRESS,
           "--secret-file", os.environ["SECRET_FILE"], "-n", RANKS_PER_NODE, "--no-python"]
    words = [*enter, BIN / "rankrun", *job, BIN / "allreduce_rankrun", *plan.arguments()]
    return [str(word) for word in words]


def run_node(node, backend, plan):
    """Runs one node's part of a job. Returns its output; raises Failed."""
    variables = os.environ | {"RANKRUN_BACKEND": backend, "OMP_NUM_THREADS": "1"}
    limit = plan.longest_seconds()
    try:
        # At the limit, run() kills unshare, and so the whole PID namespace.
        done = subprocess.run(command(node, plan), capture_output=True, text=True, env=variables,
                              timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        raise Failed(f"measure {backend}, node {node}: has not ended "
                     f"within {limit:.0f} s") from None
    except subprocess.CalledProcessError as failure:
        trouble = failure.stderr.strip() or f"exit code {failure.returncode}"
        raise Failed(f"measure {backend}, node {node}: {trouble}") from None
    return done.stdout


def run_job(backend, plan):
    """Runs a job on all nodes. Returns {bytes: microseconds}."""
    with concurrent.futures.ThreadPoolExecutor(NODES) as pool:
        outputs = pool.map(lambda node: run_node(node, backend, plan), range(NODES))
        return times_of("".join(outputs))  # rank 0 prints the times


def measure(plan):
    figures = {name: {size: [] for size in plan.sizes} for name in BACKENDS}
    for _ in range(plan.rounds):
        for name, backend in BACKENDS.items():
            times = run_job(backend, plan)
            for size in plan.sizes:
                figures[name][size].append(times.get(size))
    return figures


def print_table(figures, sizes):
    print(f"\n== {NODES} nodes with {RANKS_PER_NODE} ranks each: microseconds; "
          f"flat is {BACKENDS['flat']}, hierarchical is {BACKENDS['hierarchical']}")
    print(f"{'size':>8}", *(f"{name:>13}" for name in BACKENDS), f"{'ratio':>9}")
    for size in sizes:
        print(f"{size_text(size):>8}",
              *(f"{text(median(figures[name][size])):>13}" for name in BACKENDS),
              f"{text(ratio(figures, 'flat', 'hierarchical', size), 3):>9}")


def compare(arguments):
    plan = Plan(arguments.quick)
    figures = measure(plan)
    print_table(figures, plan.sizes)
    print("\n== summary")
    for size in plan.sizes:
        judge_at_least(f"{size_text(size)}: flat/hierarchical",
                       ratio(figures, "flat", "hierarchical", size), LEAST_RATIO)


if __name__ == "__main__":
    comparison.run("hierarchy.sh", __doc__, compare)
