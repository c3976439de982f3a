"""Prints the environment and arguments of a worker as one JSON line, then exits as requested.

    tell.py [--fail-first CODE | --exit CODE] [--say TEXT] [--warn TEXT] [ARGUMENT...]
"""

import json
import os
import sys

NAMES = (
    "RANK LOCAL_RANK GROUP_RANK ROLE_RANK ROLE_NAME LOCAL_WORLD_SIZE WORLD_SIZE GROUP_WORLD_SIZE "
    "ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS "
    "TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE TORCH_NCCL_ASYNC_ERROR_HANDLING "
    "OMP_NUM_THREADS TORCHELASTIC_ERROR_FILE TORCHELASTIC_TIMER_FILE CUDA_VISIBLE_DEVICES "
    "TORCHELASTIC_SIGNALS_TO_HANDLE"
).split()


def take(arguments, flag):
    """Removes `flag VALUE` from the front of the arguments and returns VALUE, or None."""
    if arguments[:1] != [flag]:
        return None
    value = arguments[1]
    del arguments[:2]
    return value


def write(descriptor, line):
    """Writes the line at once, because workers may share a file and torchrun may mix their lines."""
    os.write(descriptor, (line + "\n").encode())


def main():
    arguments = sys.argv[1:]
    fail_first, code = take(arguments, "--fail-first"), take(arguments, "--exit")
    said, warned = take(arguments, "--say"), take(arguments, "--warn")
    if said is not None:
        write(1, said)
    if warned is not None:
        write(2, warned)
    if said is None and warned is None:
        variables = {name: os.environ.get(name) for name in NAMES}
        others = {"OMP_NUM_THREADS", "LC_CTYPE", "TORCH_FR_DUMP_TEMP_FILE"}
        names = sorted(n for n in os.environ if not n.startswith("RANKRUN_") and n not in others)
        told = {"names": names, "argv": sys.argv[1:], "variables": variables, "session": os.getsid(0) == os.getpid(),
                "unbuffered": sys.flags.isolated == 0 and sys.stdout.write_through,
                "main": __name__ == "__main__", "script": os.path.basename(sys.argv[0])}
        write(1, "TOLD " + json.dumps(told, sort_keys=True))
    if fail_first is not None and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(int(fail_first))
    sys.exit(int(code or 0))


if __name__ == "__main__":
    main()
