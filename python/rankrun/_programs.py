"""Starts the native programs of an installation, in the place of this process."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def find(name):
    """Returns the path of rankrun or rankctl. Raises FileNotFoundError."""
    places = [
        # This is PREFIX/lib/python3.N/site-packages/rankrun, or PREFIX/share/rankrun/python/rankrun.
        _PACKAGE.parents[3] / "bin" / name,
        _PACKAGE.parent / "bin" / name,  # pip install --target
        Path(sysconfig.get_path("scripts")) / name,  # an editable installation
    ]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which(name)
    if found is None:
        tried = ", ".join(map(str, places))
        raise FileNotFoundError(f"there is no program {name}; tried {tried} and PATH")
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
        path = find("rankrun")
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
