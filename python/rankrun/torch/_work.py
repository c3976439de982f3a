"""Handles of operations."""

import datetime
import threading

import torch
from torch._C import _distributed_c10d as c10d

from rankrun import _native
from rankrun._time import milliseconds
from rankrun.torch import _completions
from rankrun.torch._errors import NativeError, translated

_NO_LIMIT = datetime.timedelta(0)


class Done(c10d.Work):
    """An operation that has ended before its call returned."""

    def __init__(self, results=()):
        super().__init__()
        self._results = results

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def exception(self):
        return None

    def wait(self, timeout=_NO_LIMIT):
        return True

    def synchronize(self):
        pass

    def result(self):
        return list(self._results)

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(list(self._results))
        return future


DONE = Done()


class Work(c10d.Work):
    """An operation under way, or several."""

    # parts: other Work that this one comprises, instead of handles.
    def __init__(self, handles, tensors=None, results=(), parts=()):
        super().__init__()
        self._handles = handles
        self._tensors = tensors
        self._results = results
        self._parts = parts
        self._error = None
        self._is_over = False
        self._lock = threading.Lock()
        self._future = None
        self._event_end = None

    @staticmethod
    def of_all(works):
        """Returns the Work that ends with the last of some."""
        handles = [handle for work in works for handle in work._handles]
        return Work(handles, results=[each for work in works for each in work._results],
                    parts=works)

    def end_event_in_other_thread(self, event):
        """Ends an event of the profiler with the operation, before any wait returns."""
        self._event_end = threading.Event()

        def end():
            event.end()
            self._event_end.set()

        _completions.submit(self._handles[-1], end)

    def _finish(self, error=None):
        with self._lock:
            if not self._is_over:
                self._error = error
                for part in self._parts:
                    part._finish(error)
                if error is None and self._tensors is not None:
                    try:
                        self._tensors.finish()
                    except Exception as of_copy:  # every wait raises it
                        self._error = of_copy
                self._is_over = True

    def _await(self, limit_ms=None):
        """Returns whether the operation has ended within the limit."""
        try:
            for handle in self._handles:
                if limit_ms is None:
                    _native.work_wait(handle)
                elif not _native.work_wait_for(handle, limit_ms):
                    return False
        except NativeError as error:
            if not all(map(_native.work_test, self._handles)):
                raise translated(error) from None  # the wait has failed, not the operation
            self._finish(translated(error))
            return True
        self._finish()
        return True

    def is_completed(self):
        if self._is_over:
            return True
        return all(map(_native.work_test, self._handles)) and self._await()

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error if self.is_completed() else None

    def wait(self, timeout=_NO_LIMIT):
        if not self._is_over:
            limit = milliseconds(timeout) if timeout > _NO_LIMIT else None
            if not self._await(limit):
                raise torch.distributed.DistBackendError(
                    f"the operation has not ended within {limit} ms; it goes on"
                )
        if self._event_end is not None:
            self._event_end.wait()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def result(self):
        return list(self._results)

    def get_future(self):
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = torch.futures.Future()
        _completions.submit(self._handles[-1], self._set_future)
        return self._future

    def _set_future(self):
        try:
            self._await()
        except Exception as error:
            self._future.set_exception(error)
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(list(self._results))


class Receive(Work):
    """A message to this rank from any other. ranks: those of librankrun, by group rank."""

    def __init__(self, handle, tensors, results, ranks):
        super().__init__([handle], tensors, results)
        self._ranks = ranks

    def source_rank(self):
        return self._ranks.index(_native.work_source(self._handles[0]))

    _source_rank = source_rank
