"""What the programs of this folder tell the test, and the death of one of their ranks.

TOOL_FOLDER: for checkpoints. TOOL_DIES: if set, the last rank kills itself once, in the middle.
"""

import os
import signal

FOLDER = os.environ["TOOL_FOLDER"]
STEPS = 6
_DEATH = 4  # step
_rank, _size = int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", 0))


def be(rank, size):
    """Lets this worker count as another rank."""
    global _rank, _size
    _rank, _size = rank, size


def begin():
    with open(f"/proc/{os.getppid()}/comm") as file:
        agent = file.read().strip()
    print(f"rank {_rank} of {_size} below {agent}", flush=True)


def die_at(step):
    """Called by all ranks before each step."""
    if step != _DEATH or "TOOL_DIES" not in os.environ or _restarts():
        return
    import torch.distributed

    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # the checkpoint before is complete
    if _rank == _size - 1:
        os.kill(os.getpid(), signal.SIGKILL)


def done_steps():
    """Returns the number of steps by the last note()."""
    try:
        with open(os.path.join(FOLDER, "steps")) as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def note(step):
    """Called once a checkpoint is complete."""
    if _rank == 0:
        draft = os.path.join(FOLDER, "steps.draft")
        with open(draft, "w") as file:
            file.write(str(step))
        os.replace(draft, os.path.join(FOLDER, "steps"))


def end(first, last):
    print(f"rank {_rank} has done steps {first} to {last}", flush=True)


def _restarts():
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])
