"""rankrun.status: the state of a running job."""

import html
import subprocess

from rankrun import _programs


class Status:
    """The table of `rankctl status` as text; in a notebook, a cell shows it as it is."""

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre>{html.escape(self._text)}</pre>"


def status(job=None):
    """Returns the state of all ranks of a job, now.

    job: its run id, or the pid of its rankrun. Default: the only job of this user on this host.
    Raises RuntimeError with the message of rankctl, if there is no such job.
    """
    words = [_programs.find("rankctl"), "status", "--once"]
    if job is not None:
        words.append(f"--job={job}")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return Status(done.stdout.rstrip("\n"))
