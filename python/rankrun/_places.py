"""Where an installation has what programs in C and C++ need."""

import os
from pathlib import Path

NAME = "librankrun.so.0"
_PACKAGE = Path(__file__).resolve().parent
_PREFIX = _PACKAGE.parents[3]  # of PREFIX/share/rankrun/python/rankrun, without a wheel


def _first(places, name):
    places = list(places)
    for place in places:
        if place.exists():
            return str(place)
    raise FileNotFoundError(f"there is no {name} in {', '.join(str(place.parent) for place in places)}")


def _libraries():
    yield _PACKAGE / "lib" / NAME  # of a wheel
    for pattern in ("lib*", "lib/*"):
        yield from (folder / NAME for folder in sorted(_PREFIX.glob(pattern)))


def get_library():
    """Returns the path of librankrun: RANKRUN_LIBRARY, or the installed one."""
    return os.environ.get("RANKRUN_LIBRARY") or _first(_libraries(), NAME)


def get_include_dir():
    """Returns the folder for -I. Raises FileNotFoundError."""
    return _first((_PACKAGE / "include", _PREFIX / "include"), "include")


def get_cmake_dir():
    """Returns the folder for CMAKE_PREFIX_PATH or rankrun_DIR. Raises FileNotFoundError."""
    folders = [library.parent / "cmake" / "rankrun" for library in _libraries()]
    return _first(folders, "CMake package")
