"""show FILE: as a worker, writes its environment to FILE.<rank>.
compare OURS THEIRS: compares what workers of rankrun and of torchrun wrote."""

import json
import os
import sys

# Each launcher chooses its own.
OWN = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}
# torchrun gives each worker one thread, rankrun its share of the cores, one worker all.
BETTER = {"OMP_NUM_THREADS"}
ONLY_OURS = {"RANKRUN_STATUS_FD", "RANKRUN_STATUS_PATH"}


def show(path):
    with open(f"{path}.{os.environ['RANK']}", "w") as file:
        json.dump(dict(os.environ), file)


def signals(environment):
    return set(environment["TORCHELASTIC_SIGNALS_TO_HANDLE"].split(","))


def compare_one(ours, theirs):
    missing = set(theirs) - set(ours)
    assert not missing, f"missing: {missing}"
    more = set(ours) - set(theirs) - BETTER
    assert more == ONLY_OURS, f"invented: {more - ONLY_OURS}"
    assert signals(ours) == signals(theirs)
    same = set(theirs) - OWN - {"TORCHELASTIC_SIGNALS_TO_HANDLE"}
    if int(theirs.get("OMP_NUM_THREADS", 1)) == 1:
        assert int(ours["OMP_NUM_THREADS"]) >= 1
        same -= BETTER
    for name in same:
        assert ours[name] == theirs[name], f"{name}: {ours[name]!r}, torchrun: {theirs[name]!r}"
    assert os.path.isabs(ours["TORCHELASTIC_ERROR_FILE"])
    assert ours["TORCHELASTIC_RUN_ID"] and int(ours["MASTER_PORT"]) > 0


def compare(ours, theirs):
    ranks = int(json.load(open(f"{ours}.0"))["WORLD_SIZE"])
    for rank in range(ranks):
        compare_one(json.load(open(f"{ours}.{rank}")), json.load(open(f"{theirs}.{rank}")))
    print(f"{ranks} workers: the same environment")


{"show": show, "compare": compare}[sys.argv[1]](*sys.argv[2:])
