"""Shows a restart: python -m rankrun.demo, or rankrun -n 4 -m rankrun.demo.

Four workers fit a curve to points, twice: undisturbed, and with a worker that is killed in the middle. rankrun
then starts all workers again, which go on at their last checkpoint. Both must give the same curve. It needs no other
package.
"""

import json
import math
import os
import signal
import sys
import tempfile
import time

_STEPS = 400
_STEPS_PER_CHECKPOINT = 50
_DEATH = 220  # step
_POINTS_PER_RANK = 100
_DEGREE = 5
_RATE = 0.5


def _points(rank, size):
    """Returns the part of a rank of the points of a sine, with their powers."""
    for i in range(rank, _POINTS_PER_RANK * size, size):
        x = 2 * i / (_POINTS_PER_RANK * size) - 1
        yield [x**power for power in range(_DEGREE + 1)], math.sin(3 * x)


def _load(path):
    """Returns the step and the weights of the last checkpoint, or those of the beginning."""
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return 0, [0.0] * (_DEGREE + 1)


def _save(path, step, weights):
    with open(path + ".tmp", "w") as file:
        json.dump((step, weights), file)
    os.rename(path + ".tmp", path)


def _train(path, dies):
    """Fits the curve in one of several ranks. Returns its first step, the weights and the error."""
    from rankrun import _library

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    is_first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    points = list(_points(rank, size))
    _library.join_world()
    begin, weights = _load(path)
    for step in range(begin, _STEPS):
        if dies and is_first and step == _DEATH and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        sums = [0.0] * (_DEGREE + 2)  # of the gradient, and of the squared errors
        for powers, y in points:
            error = sum(w * p for w, p in zip(weights, powers)) - y
            for i, power in enumerate(powers):
                sums[i] += error * power
            sums[-1] += error * error
        *gradient, squares = (total / (_POINTS_PER_RANK * size) for total in _library.all_reduce(sums))
        weights = [w - _RATE * g for w, g in zip(weights, gradient)]
        if rank == 0 and (step + 1) % _STEPS_PER_CHECKPOINT == 0:
            _save(path, step + 1, weights)
    _library.leave_world()
    return begin, weights, math.sqrt(squares)


def _run(workers, folder, dies):
    import rankrun

    began = time.monotonic()
    path = os.path.join(folder, "disturbed" if dies else "undisturbed")
    begin, weights, error = rankrun.launch(_train, workers, path, dies, max_restarts=1)[0]
    resumed = f", since step {begin} in attempt 1" if begin else ""
    print(f"   error {error:.6f} after {_STEPS} steps{resumed}; {time.monotonic() - began:.2f} s")
    return weights


def main():
    workers = int(os.environ.get("WORLD_SIZE", 4))
    if os.environ.get("RANK", "0") != "0":
        return 0  # rank 0 starts a job of its own
    with tempfile.TemporaryDirectory() as folder:
        print(f"== undisturbed: {workers} workers, {_STEPS} steps", flush=True)
        expected = _run(workers, folder, dies=False)
        print(f"== the same, rank {workers - 1} is killed by SIGKILL at step {_DEATH}", flush=True)
        weights = _run(workers, folder, dies=True)
    if weights != expected:
        print("== the curves DIFFER", expected, weights, sep="\n   ")
        return 1
    print("== both curves are equal, to the last bit")
    return 0


if __name__ == "__main__":
    # By its name, so that workers find the functions.
    from rankrun.demo import main as _main

    sys.exit(_main())
