"""Shows a job in the output of a notebook's cell."""

import html
import os
import subprocess
import sys
import tempfile
import time

from rankrun import _programs, _status

_MOST_RANKS = 16  # in the table


def display():
    """Returns a display for one job; None if this is no notebook."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return _Display() if hasattr(shell, "kernel") else None


class _Display:
    """A line with the progress of a job, and below it the state of its ranks."""

    def __init__(self):
        self._handle = None
        self._begin = time.monotonic()

    def update(self, job):
        """Shows a job that runs."""
        run_id = job.last("job_started").get("run_id")
        table = ""
        if run_id:
            try:
                lines = str(_status.status(run_id)).splitlines()[1:]  # without the program
            except (RuntimeError, OSError):
                lines = []  # while the agent is being replaced, or without rankctl
            if len(lines) > _MOST_RANKS + 1:
                lines[_MOST_RANKS + 1 :] = [f"and {len(lines) - _MOST_RANKS - 1} more: rankctl status"]
            table = "\n".join(lines)
        self._show(_progress(job), table)

    def end(self, job, flags):
        """Shows how a job has ended; if it failed, with the page of its report."""
        self._show(_end(job))
        page = _page(job, flags) if job.code != 0 else None
        if page:
            frame = 'sandbox style="width: 100%; height: 32em; border: 0"'
            _publish(f'<iframe srcdoc="{html.escape(page)}" {frame}></iframe>', job.last("report")["text"])

    def _show(self, line, table=""):
        line = f"rankrun: {line}, {time.monotonic() - self._begin:.0f} s"
        text = f"{line}\n{table}".rstrip()
        content = f"<pre>{html.escape(text)}</pre>"
        if self._handle is None:
            self._handle = _publish(content, text)
        else:
            self._handle.update(_bundle(content, text), raw=True)


def _bundle(content, text):
    return {"text/html": content, "text/plain": text}


def _publish(content, text):
    from IPython.display import display as show

    return show(_bundle(content, text), raw=True, display_id=True)


def _progress(job):
    if not job.last("attempt_started"):
        return "starting"
    attempt = job.last("attempt_started")["attempt"]
    running = len(job.of_last_attempt("worker_started")) - len(job.of_last_attempt("worker_ended"))
    workers = job.last("job_started")["workers"]
    stop = job.of_last_attempt("stop_begun")
    why = job.last("stop_begun").get("why")
    if stop:
        return f"stopping the workers: {why}"
    line = f"{running} of {workers} workers run"
    return f"{line}, restart {attempt} after {why}" if attempt and why else line


def _end(job):
    ended = job.last("job_ended")
    restarts = ended.get("restarts", 0)
    line = "failed: " + ended.get("why", "see its message") if job.code else "all workers have ended"
    return f"{line}, {restarts} restart{'' if restarts == 1 else 's'}"


def _page(job, flags):
    """Returns the page of the report; None if none is kept, as with --report-dir /dev/null."""
    run_id = job.last("report").get("run_id")
    if not run_id:
        return None
    folder = [flag for flag in flags if flag.startswith("--report-dir=")]
    with tempfile.TemporaryDirectory(prefix="rankrun-page-") as place:
        path = os.path.join(place, "report.html")
        try:
            words = [_programs.find("rankctl"), "report", f"--html={path}", *folder, run_id]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None
