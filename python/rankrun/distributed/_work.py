"""Handles of operations."""

import asyncio

from rankrun import _native
from rankrun._time import milliseconds


class Work:
    """An operation under way. `await work` waits for it as wait() does, in a thread of asyncio's."""

    def __init__(self, handle, ranks=()):
        self._handle = handle
        self._ranks = ranks

    def wait(self, timeout=None):
        """Waits until the operation has ended, and returns True.

        Raises the operation's error, and DistTimeoutError if `timeout` (a timedelta) is over first;
        then the operation goes on.
        """
        if timeout is None:
            _native.work_wait(self._handle)
        elif not _native.work_wait_for(self._handle, milliseconds(timeout)):
            raise _native.DistTimeoutError(f"the operation has not ended within {timeout}; it goes on")
        return True

    def is_completed(self):
        """Returns whether the operation has ended, also by an error. Never waits."""
        return _native.work_test(self._handle)

    def exception(self):
        """Returns the error of an operation that has ended by one, else None."""
        try:
            return None if not self.is_completed() or self.wait() else None
        except _native.DistError as error:
            return error

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def source_rank(self):
        """Returns the global rank of the sender of a message that has come."""
        return _native.work_source(self._handle)

    def __await__(self):
        return asyncio.get_running_loop().run_in_executor(None, self.wait).__await__()
