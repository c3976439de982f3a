"""The preloader of a node: imports modules once, and becomes a worker for each order.

rankrun runs it by the Python of the workers (agent/preload/preloader.h):

    python [options] preload.py MODULE,... {SCRIPT | -m MODULE | -c CODE} [argument ...]

in a session of its own, with a socket of packets as descriptor 3. It imports the modules as the
program would, and sends {"notes": [...], "unsafe": "..." or null}. Then it answers:

    {"check": true}   with {"changed": PATH or null}: a file of an imported module that has changed.
    {"fork": true}    with {"pid": N}, or {"step": "fork" or "bind", "errno": N}. Descriptors come with it:
                      a file with the order in JSON (agent/preload/preload_texts.h), standard input,
                      output and error, and the status page, if there is one.

A worker has all that rankrun gives to an executed one (base/process/spawn.h). It is a child of
rankrun's agent, which adopts it: the process that this one forks, forks again and ends.
"""

import array
import atexit
import ctypes
import errno
import fcntl
import gc
import importlib.machinery
import io
import json
import os
import pkgutil
import resource
import runpy
import signal
import socket
import stat
import sys
import types
import warnings

_ORDERS = 3  # the descriptor of the socket, and later of the status page
_MAX_PACKET = 4096
_MAX_DESCRIPTORS = 5
_HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_PR_SET_PDEATHSIG = 1
_EXIT_NOT_STARTED = 127

_interrupted = False
_threads_at_import = os.environ.get("OMP_NUM_THREADS")


class _NotBound(OSError):
    """A worker cannot have its cores."""


def _import(names):
    """Imports modules. Returns a line for each that fails, and why no fork is safe, or None."""
    notes = []
    before = _descriptors()
    for name in names:
        try:
            __import__(name)
        except BaseException as error:  # some call sys.exit
            notes.append(f"{name}: {type(error).__name__}: {error}")
        unsafe = _danger(before)
        if unsafe:
            return notes, f"{name} {unsafe}"
    return notes, None


def _danger(before):
    """Returns what makes a fork unsafe: "runs 2 threads (name)", ...; None if nothing does."""
    if len(os.listdir("/proc/self/task")) > 1:
        # Some libraries end their threads before a fork, and start them again when needed.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    threads = [task for task in os.listdir("/proc/self/task") if int(task) != os.getpid()]
    if threads:
        names = ", ".join(sorted({_text(f"/proc/self/task/{task}/comm") for task in threads}))
        return f"runs {len(threads)} thread{'s' if len(threads) > 1 else ''} ({names})"
    if _text(f"/proc/self/task/{os.getpid()}/children"):
        return "has started a process"
    for number, name in _descriptors().items():
        if before.get(number) != name and _is_of_one_process(number, name):
            return f"has opened {name}"
    return None


def _descriptors():
    """Returns the names behind the open descriptors, by number."""
    names = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            names[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            pass  # that of the list
    return names


def _is_of_one_process(number, name):
    """Returns whether processes must not share what is behind a descriptor: a socket, a device."""
    mode = os.fstat(int(number)).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or name in _HARMLESS_DEVICES)


def _text(path):
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _imported_files():
    """Returns what identifies the version of each file of an imported module."""
    files = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.isabs(path):
            files[path] = _version_of(path)
    return files


def _version_of(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _receive(orders):
    """Returns a request and its descriptors; None when the agent has gone."""
    numbers = array.array("i")
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * numbers.itemsize)
    data, messages, _, _ = orders.recvmsg(_MAX_PACKET, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, content in messages:
        numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return (json.loads(data), list(numbers)) if data else None


def _serve(orders, agent):
    """Answers orders. Returns in each worker, with its order; None when the agent has gone."""
    files = _imported_files()
    while True:
        received = _receive(orders)
        if received is None:
            return None
        request, descriptors = received
        if request.get("check"):
            changed = (path for path, version in files.items() if _version_of(path) != version)
            _send(orders, {"changed": next(changed, None)})
            continue
        order = _fork(orders, descriptors, agent)
        if order is not None:
            return order
        for descriptor in descriptors:
            os.close(descriptor)


def _send(orders, answer):
    orders.send(json.dumps(answer).encode())


def _fork(orders, descriptors, agent):
    """Forks twice. Returns the order in the worker, None in the preloader."""
    adopted, not_adopted = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        _send(orders, {"step": "fork", "errno": error.errno})
        child = None
    if child != 0:
        if child is not None:
            os.waitpid(child, 0)  # then the agent has adopted the worker
        os.close(adopted)
        os.close(not_adopted)
        return None
    try:
        os.close(not_adopted)
        if os.fork():
            os._exit(0)
        os.read(adopted, 1)  # until the preloader closes the other end
        os.close(adopted)
        order = _become_worker(descriptors, agent)
    except Exception as error:
        is_binding = isinstance(error, _NotBound)
        number = getattr(error, "errno", None) or errno.EIO
        _send(orders, {"step": "bind" if is_binding else "fork", "errno": number})
        os._exit(_EXIT_NOT_STARTED)
    _send(orders, {"pid": os.getpid()})
    orders.close()
    return order


def _become_worker(descriptors, agent):
    """Gives this process all that an executed worker has. Returns the order."""
    file, *streams = descriptors
    with open(file, "rb") as text:
        text.seek(0)
        order = json.load(text)
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != agent:
        os._exit(_EXIT_NOT_STARTED)  # the agent has died before the call
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    if len(streams) <= _ORDERS:
        os.close(_ORDERS)
    _set_limit(resource.RLIMIT_NOFILE, order["open_files"])
    _set_limit(resource.RLIMIT_CORE, order["core_bytes"])
    if order["oom_score_adj"] is not None:
        try:
            with open("/proc/self/oom_score_adj", "w") as score:
                score.write(str(order["oom_score_adj"]))
        except OSError:
            pass  # the kernel treats it like any other process
    if order["cpus"]:
        try:
            os.sched_setaffinity(0, order["cpus"])
        except OSError as error:
            raise _NotBound(error.errno, error.strerror) from error
    _set_environment(order["environment"])
    _show_command_line(_bytes_of(order["arguments"]))
    return order


def _set_limit(limit, soft):
    try:
        if soft is not None:
            resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
    except (OSError, ValueError):
        pass  # the program has the limit of the preloader


def _bytes_of(texts):
    """Returns texts whose characters are the bytes of the original ones."""
    return [text.encode("latin-1") for text in texts]


def _set_environment(entries):
    os.environb.clear()
    for entry in _bytes_of(entries):
        name, _, value = entry.partition(b"=")
        if name:
            os.environb.setdefault(name, value)  # the first one of a name counts, as in C


def _show_command_line(words):
    """Lets ps show the command line of the program, as far as there is room for it."""
    first, last = (int(field) for field in _text("/proc/self/stat").rpartition(")")[2].split()[45:47])
    text = b"".join(word + b"\0" for word in words)
    ctypes.memmove(first, text[: last - first - 1].ljust(last - first, b"\0"), last - first)


def _renew():
    """Renews what a new process would have of its own."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # the module random has done so already
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if "torch" in sys.modules and threads != _threads_at_import and threads.isdigit():
        sys.modules["torch"].set_num_threads(int(threads))
    if not sys.stdout.write_through:
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    _renew_input(sys.stdin)


def _renew_input(before):
    """Opens standard input again, because the object remembers whether it can seek."""
    file = open(0, "rb", closefd=False)
    file.raw.name = before.name
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        file, before.encoding, before.errors, "\n", before.line_buffering, before.write_through)
    sys.stdin.mode = before.mode


def _set_first_path(words):
    """Puts into sys.path what Python puts before the others for a program."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return
    if words[0] == "-m":
        sys.path[0] = os.getcwd()
    elif words[0] == "-c":
        sys.path[0] = ""
    elif pkgutil.get_importer(words[0]) is not None:  # a folder or an archive with a __main__.py
        sys.path[0] = words[0]
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(words[0]))


def _arguments_of(words):
    return words[:1] + words[2:] if words[0] in ("-m", "-c") else words


def _run(words):
    """Runs a program as the module __main__."""
    main = sys.modules["__main__"].__dict__
    for name in set(main) - {"__name__", "__builtins__", "__annotations__"}:
        del main[name]
    main.update(__doc__=None, __package__=None, __spec__=None, __loader__=None)
    if words[0] == "-m":
        runpy._run_module_as_main(words[1])
    elif words[0] == "-c":
        main["__loader__"] = importlib.machinery.BuiltinImporter
        exec(compile(words[1] + "\n", "<string>", "exec"), main)
    elif pkgutil.get_importer(words[0]) is not None:
        runpy._run_module_as_main("__main__", alter_argv=False)
    else:
        _run_script(os.path.abspath(words[0]), main)


def _run_script(path, main):
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        why = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {why}", file=sys.stderr)
        sys.exit(2)
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.update(__file__=path, __cached__=None, __loader__=loader)
    exec(compile(text, path, "exec"), main)


def _without_own_frames(error):
    """Returns what sys.excepthook gets, without the frames of this file at its beginning."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return type(error), error.with_traceback(trace), trace


def _show_exception(error):
    """Shows an exception that the program has not caught, as Python does."""
    try:
        sys.excepthook(*_without_own_frames(error))
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(*_without_own_frames(second))
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(*_without_own_frames(error))


def _end_by_interrupt():
    """Ends as Python does after a KeyboardInterrupt, when all other exit functions have run."""
    if _interrupted:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _preload(modules, words):
    """Imports the modules, and serves the agent. Returns in each worker, with its order."""
    agent = os.getppid()
    orders = socket.socket(fileno=fcntl.fcntl(_ORDERS, fcntl.F_DUPFD_CLOEXEC, 10))
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, _ORDERS, inheritable=False)  # keeps the number for the status page
    os.close(null)
    sys.argv = _arguments_of(words)
    _set_first_path(words)
    notes, unsafe = _import([name for name in modules.split(",") if name])
    gc.collect()
    gc.freeze()  # so that a collection in a worker does not copy their pages
    _send(orders, {"notes": notes, "unsafe": unsafe})
    return _serve(orders, agent)


def main(modules, words):
    global _interrupted
    atexit.register(_end_by_interrupt)  # before all others, so that it runs last
    order = _preload(modules, words)
    if order is None:
        os._exit(0)
    sys.orig_argv = [os.fsdecode(word) for word in _bytes_of(order["arguments"])]
    words = sys.orig_argv[1 + order["options"] :]
    sys.argv = _arguments_of(words)
    _set_first_path(words)
    _renew()
    failure = None
    try:
        _run(words)
    except SystemExit:
        raise
    except BaseException as error:
        failure = error
    if failure is not None:  # out of the handler, so that it is no context of others
        _show_exception(failure)
        _interrupted = isinstance(failure, KeyboardInterrupt)
        sys.exit(130 if _interrupted else 1)


if __name__ == "__main__":
    # As a module of another name, so that __main__ is left to the program.
    _module = types.ModuleType("_rankrun_preload")
    _module.__file__ = __file__
    sys.modules[_module.__name__] = _module
    with open(__file__, "rb") as _file:
        exec(compile(_file.read(), __file__, "exec"), _module.__dict__)
    _module.main(sys.argv[1], sys.argv[2:])
