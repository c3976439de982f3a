"""rankrun.launch: a function as a job, from a script or a notebook."""

import os
import signal
import sys
import tempfile

from rankrun import _call, _job, _notebook


class JobFailed(RuntimeError):
    """A job that ended without success. Its text is rankrun's report on the job.

    code: the exit code of rankrun. rank: that of the worker that failed first, or None.
    error: the traceback of that worker; empty if it left none.
    """

    def __init__(self, report, code, rank, error):
        super().__init__(report)
        self.code = code
        self.rank = rank
        self.error = error


def launch(function, nproc, *arguments, flags=(), max_restarts=0):
    """Calls function(*arguments) in `nproc` workers of this node. Returns the results by rank.

    The workers have the environment of any worker of rankrun, so that the function may
    call torch.distributed.init_process_group(). The function and the arguments are pickled; in
    a notebook the function may be defined there. `flags`: others of rankrun, such as
    ("--hang-timeout=60",). After a failed attempt, all are called again, max_restarts times. The
    result of a rank that ends by sys.exit(0) is None. In a notebook the cell shows the state of
    the ranks each second, and the page of the report if the job fails.

    Raises JobFailed; ValueError for flags that this function needs itself.
    """
    for flag in flags:
        if flag.partition("=")[0] in ("--events", "--lifeline"):
            raise ValueError(f"launch: {flag} in flags: launch uses it itself")
    with tempfile.TemporaryDirectory(prefix="rankrun-call-") as folder:
        call, results = os.path.join(folder, "call"), os.path.join(folder, "results")
        os.mkdir(results)
        _call.write(call, function, arguments)
        program = [sys.executable, "-u", "-m", "rankrun._call", call, results]
        words = [f"--nproc-per-node={nproc}", f"--max-restarts={max_restarts}", *flags, "--no-python"]
        shown = _notebook.display()
        job = _job.run(
            words, program, forwarded=(signal.SIGTERM, signal.SIGHUP), watch=shown and shown.update)
        if shown:
            shown.end(job, flags)
        if job.code != 0:
            raise _failure(job)
        by_rank = _call.read(results)
    return [by_rank.get(rank) for rank in job.ranks()]


def _failure(job):
    report = job.last("report")
    cause = report.get("cause", {})
    why = job.last("job_ended").get("why", "see its message above")
    text = report.get("text") or f"rankrun ended with exit code {job.code}: {why}"
    return JobFailed(text, job.code, cause.get("rank"), cause.get("exception", ""))
