"""Starts the native programs of an installation, in the place of this process."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def find_rankrun():
    """Returns the path of the launcher. Raises FileNotFoundError."""
    places = [
        # This is PREFIX/lib/python3.N/site-packages/rankrun, or PREFIX/share/rankrun/python/rankrun.
        _PACKAGE.parents[3] / "bin" / "rankrun",
        _PACKAGE.parent / "bin" / "rankrun",  # pip install --target
        Path(sysconfig.get_path("scripts")) / "rankrun",  # an editable installation
    ]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("rankrun")
    if found is None:
        tried = ", ".join(map(str, places))
        raise FileNotFoundError(f"there is no program rankrun; tried {tried} and PATH")
    return found


def _start(path, name):
    # Otherwise rankrun takes the Python beside its own path, or the first in PATH.
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {path}: {error.strerror}")


def start_rankrun(name):
    try:
        path = find_rankrun()
    except FileNotFoundError as error:
        sys.exit(f"{name}: {error}")
    _start(path, name)


def rankrun():
    start_rankrun("rankrun")


def rankrun_launch():
    """As `python -m torch.distributed.launch`; rankrun knows by its name what to do."""
    start_rankrun("rankrun-launch")


def rankrun_bench():
    _start(str(_PACKAGE / "bin" / "rankrun-bench"), "rankrun-bench")
