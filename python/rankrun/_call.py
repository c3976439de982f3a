"""Calls a function in a worker: python -m rankrun._call CALL RESULTS.

CALL: a file by write(). RESULTS: the folder for a file with the result of each rank.
"""

import json
import os
import pickle
import sys
import time
import traceback
from multiprocessing import spawn


def write(path, function, arguments):
    """Writes what a worker needs to call function(*arguments).

    The function may be defined in the main script, as with the start method "spawn"
    of multiprocessing; in a notebook or after `python -c`, it is taken by its value.
    """
    main = sys.modules["__main__"]
    preparation = spawn.get_preparation_data("rankrun")
    preparation.pop("authkey", None)  # no secret in a file
    has_script = getattr(main, "__spec__", None) or getattr(main, "__file__", None)
    pickler = pickle if has_script else _by_value(function)
    with open(path, "wb") as file:
        pickle.dump(preparation, file)
        file.write(pickler.dumps((function, arguments)))


def _by_value(function):
    try:
        import cloudpickle
    except ImportError:
        if function.__module__ != "__main__":
            return pickle
        raise RuntimeError(
            f"the function {function.__name__} is defined in no script, so that workers get it "
            "by its value: want the package cloudpickle (pip install cloudpickle)"
        ) from None
    return cloudpickle


def read(folder):
    """Returns the results by rank."""
    results = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            results[int(name)] = pickle.load(file)
    return results


def _note_failure(error):
    """Writes the error file of torchrun, from which rankrun and PyTorch quote the exception."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    message = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))},
    }
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"message": message}, file)
    except OSError as failure:
        print(f"rankrun: {path}: {failure.strerror}", file=sys.stderr)


def _main(call, results):
    with open(call, "rb") as file:
        spawn.prepare(pickle.load(file))
        function, arguments = pickle.load(file)
    try:
        value = function(*arguments)
    except Exception as error:
        _note_failure(error)
        raise
    # Renamed, so that no half of a result is read.
    path = os.path.join(results, os.environ["RANK"])
    draft = os.path.join(os.path.dirname(results), "draft." + os.environ["RANK"])
    with open(draft, "wb") as file:
        pickle.dump(value, file)
    os.rename(draft, path)


if __name__ == "__main__":
    _main(*sys.argv[1:])
