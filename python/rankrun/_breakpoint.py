"""A breakpoint of one rank, in pdb on the job's terminal."""

import os
import pdb
import sys

from rankrun import _library

_debugger = None  # that has the terminal


class _Debugger(pdb.Pdb):
    """pdb on a terminal, which it returns once the program goes on without stops.

    The other ranks go on as soon as the first command lets this one go on.
    """

    def __init__(self, path):
        self._files = []
        try:
            super().__init__(
                stdin=self._open(path, "r"), stdout=self._open(path, "w"), nosigint=True
            )
        except OSError:
            self.end()
            raise
        self._is_over = False

    def _open(self, path, mode):
        # Not as the controlling terminal, so that its end sends no SIGHUP.
        opener = lambda name, flags: os.open(name, flags | os.O_NOCTTY)
        self._files.append(open(path, mode, opener=opener))
        return self._files[-1]

    def interaction(self, *arguments):
        super().interaction(*arguments)
        _library.let_others_go_on()
        if self._is_over:
            self.end()

    def set_continue(self):
        super().set_continue()
        self._is_over = not self.breaks

    def set_quit(self):
        super().set_quit()
        self._is_over = True

    def end(self):
        global _debugger
        _debugger = None
        for file in self._files:
            file.close()
        _library.return_terminal()


def breakpoint(rank=0, skip=0):
    """Stops `rank` in pdb on the job's terminal, while all other ranks wait.

    All ranks call it, with the same arguments. The first `skip` calls at a line are ignored.
    pdb stops at the line that follows; the others go on with the first command that lets this
    rank go on. Joins the world of librankrun, if the program has not, beside other frameworks.

    Raises RuntimeError: rankrun has no terminal here, the arguments of the ranks differ, a rank
    has ended, or not all ranks called within the world's time-out.
    """
    global _debugger
    frame = sys._getframe(1)
    _library.join_world()
    path = _library.breakpoint_inside(rank, skip, frame.f_code.co_filename, frame.f_lineno)
    if path is None:
        return
    if _debugger is None:
        _debugger = _Debugger(path)
    _debugger.set_trace(frame)
