"""Runs a job by the program rankrun, as docs/launch.md says for C++."""

import json
import os
import signal
import subprocess
import threading

from rankrun import _programs


class Job:
    """A job: its exit code, None while it runs, and its events in order (docs/events.md)."""

    def __init__(self, code, events):
        self.code = code
        self.events = events

    def of_last_attempt(self, kind):
        attempts = [event["attempt"] for event in self.events if event["event"] == "attempt_started"]
        last = attempts[-1] if attempts else 0
        return [
            event
            for event in self.events
            if event["event"] == kind and event.get("attempt", last) == last
        ]

    def ranks(self):
        """The ranks of this node in the last attempt, in order."""
        return sorted(event["rank"] for event in self.of_last_attempt("worker_ended"))

    def last(self, kind):
        """The last event of a kind; {} if there is none."""
        return next((event for event in reversed(self.events) if event["event"] == kind), {})


def run(flags, program, name="rankrun", forwarded=(), watch=None):
    """Runs a job to its end, and returns it.

    `name` is that by which rankrun is called: "torchrun" has other defaults. Signals with the numbers
    `forwarded` go to the job instead of this process, if this is the main thread. `watch` is called with
    the job each second while it runs. The job ends with this process, however that ends.
    Raises KeyboardInterrupt, once the job has ended.
    """
    path = _programs.find("rankrun")
    events = os.memfd_create("rankrun-events")
    ours, lifeline = None, None
    try:
        lifeline, ours = os.pipe()
        words = [name, f"--events=/dev/fd/{events}", f"--lifeline={lifeline}", *flags, "--", *program]
        interrupts_both = _is_in_foreground()
        process = subprocess.Popen(
            words, executable=path, pass_fds=(events, lifeline), start_new_session=not interrupts_both)
        os.close(lifeline)
        lifeline = None
        interrupt = None if interrupts_both else signal.SIGINT
        look = watch and (lambda: watch(Job(None, _read(events))))
        code = _wait(process, forwarded, interrupt, look)
        return Job(code, _read(events))
    finally:
        for descriptor in (events, lifeline, ours):
            if descriptor is not None:
                os.close(descriptor)


def _is_in_foreground():
    """Returns whether a terminal sends SIGINT to this process and its children."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def _wait(process, forwarded, interrupt, look):
    """Waits for the end. Sends the signal `interrupt`, unless it is None, for each KeyboardInterrupt."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in forwarded:
            before[number] = signal.signal(number, lambda number, _: process.send_signal(number))
    is_interrupted = False
    try:
        while process.returncode is None:
            try:
                if look:
                    look()
                process.wait(timeout=1 if look else None)
            except subprocess.TimeoutExpired:
                pass
            except KeyboardInterrupt:
                is_interrupted = True
                if interrupt is not None:
                    process.send_signal(interrupt)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if is_interrupted:
        raise KeyboardInterrupt
    return process.returncode


def _read(events):
    content = os.pread(events, os.fstat(events).st_size, 0)
    whole = content[: content.rfind(b"\n") + 1]  # a line may be just being written
    return [json.loads(line) for line in whole.splitlines()]
