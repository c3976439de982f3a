"""rankrun for programs in Python."""

_PLACES = {
    "breakpoint": "_breakpoint",
    "launch": "_launch",
    "JobFailed": "_launch",
    "get_cmake_dir": "_places",
    "get_include_dir": "_places",
    "get_library": "_places",
    "status": "_status",
}

__all__ = list(_PLACES)


def __getattr__(name):
    """Imports a module when one of its names is used, so that `python -m rankrun` starts fast."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
