"""Prints all that a program can see of its process, to compare executed and forked workers."""

import ctypes
import os
import resource
import sys


def status(field):
    with open("/proc/self/status") as lines:
        return next(line.split()[1:] for line in lines if line.startswith(field + ":"))


def death_signal():
    number = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)  # PR_GET_PDEATHSIG
    return number.value


def kind(number):
    """Returns what is behind a descriptor, without the number of a pipe and the folder of a file."""
    path = os.path.basename(os.readlink(f"/proc/self/fd/{number}"))
    return path.partition(":")[0], os.get_inheritable(int(number)), os.isatty(int(number))


def descriptors():
    numbers = [number for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")]
    return {number: kind(number) for number in sorted(numbers)}


def differs_each_time(name, value):
    return (name in (b"MASTER_PORT", b"TORCHELASTIC_RUN_ID") or name.startswith(b"RANKRUN_")
            or b"/rankrun-" in value)


def show(name, value):
    print(f"{name}: {value}")


show("argv", sys.argv)
show("orig_argv", getattr(sys, "orig_argv", None))
show("command line", open("/proc/self/cmdline", "rb").read().rstrip(b"\0"))
show("path", sys.path)
show("globals", sorted(name for name in globals() if name.startswith("__")))
show("file", globals().get("__file__"))
show("package", __package__)
show("spec", getattr(__spec__, "name", None))
show("loader", type(__loader__).__name__)
show("main", sys.modules["__main__"].__dict__ is globals())
show("flags", sys.flags)
show("folder", os.getcwd())
show("environment", sorted(item for item in os.environb.items() if not differs_each_time(*item)))
show("secrets", sorted(name for name in os.environ if name.startswith("RANKRUN_")))
show("descriptors", descriptors())
show("streams", [(s.fileno(), s.encoding, s.errors, s.line_buffering, s.write_through, s.name, s.mode)
                 for s in (sys.stdin, sys.stdout, sys.stderr)])
show("signals", [status(field) for field in ("SigBlk", "SigIgn", "SigCgt")])
show("threads", status("Threads"))
show("session", (os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()))
show("parent", open(f"/proc/{os.getppid()}/comm").read())
show("death signal", death_signal())
show("limits", [resource.getrlimit(limit) for limit in range(resource.RLIM_NLIMITS if
                                                             hasattr(resource, "RLIM_NLIMITS") else 16)])
show("cores", sorted(os.sched_getaffinity(0)))
show("score", open("/proc/self/oom_score_adj").read())
show("mask", os.umask(0o22))
show("priority", os.nice(0))
show("input", sys.stdin.read())
