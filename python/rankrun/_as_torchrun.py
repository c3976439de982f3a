"""RANKRUN_AS_TORCHRUN=1: torchrun's command and its functions start rankrun.

rankrun.pth calls begin() at the start of Python, if the variable is set.
"""

import os
import sys

_COMMANDS = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "rankrun-launch",
}
_API = "torch.distributed.launcher.api"


def begin():
    """Starts rankrun in the place of a Python that was to run torchrun; else prepares the functions."""
    try:
        found = _command(_arguments_of_python())
        if found is not None:
            name, arguments = found
            from rankrun import _programs

            sys.argv = [name, *arguments]
            _programs.start_rankrun(name)
        sys.meta_path.insert(0, _Finder())
    except Exception as error:  # never in the way of a program that does not need it
        print(f"rankrun: RANKRUN_AS_TORCHRUN has no effect: {error}", file=sys.stderr)


def _arguments_of_python():
    if hasattr(sys, "orig_argv"):  # from Python 3.10 on
        return sys.orig_argv[1:]
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[1:-1]]


def _command(words):
    """Returns the name and the arguments of torchrun, if this command line runs it."""
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            return ("torchrun", words) if _is_torchrun(word) else None
        if word.startswith("--"):
            if word == "--check-hash-based-pycs" and words:
                words.pop(0)
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter not in "cmWX":
                continue
            value = word[at:] or (words.pop(0) if words else "")
            if letter == "c":
                return None
            if letter == "m":
                return (_COMMANDS[value], words) if value in _COMMANDS else None
            break
    return None


def _is_torchrun(path):
    """Whether a script is that which pip makes for torchrun, and no other one of its name."""
    if os.path.basename(path) != "torchrun":
        return False
    try:
        with open(path, encoding="utf-8") as file:
            return "torch.distributed.run" in file.read(4096)
    except (OSError, UnicodeDecodeError):
        return False


class _Finder:
    """Replaces launch_agent in its module, when that is loaded."""

    def find_spec(self, name, path, target=None):
        if name != _API:
            return None
        from importlib import machinery

        spec = machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        from rankrun import _torch_launch

        module.launch_agent = _torch_launch.replacing(module.launch_agent)

    def __getattr__(self, name):  # get_source and others, for tracebacks
        return getattr(self._loader, name)
