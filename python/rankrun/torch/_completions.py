"""Ends of operations, for futures whose callbacks may start and await further collectives.

One thread at a time awaits the next end of any operation, and hands this place to another before it
carries out the callbacks. So a callback may block, and there are as many threads as callbacks that
block at once, and one.
"""

import atexit
import itertools
import os
import threading

from rankrun import _native

_LONGEST_JOIN = 0.4  # seconds; a callback that blocks is left behind


class _Completions:
    def __init__(self):
        self._lock = threading.Lock()
        self._place = threading.Lock()  # of the thread that awaits
        self._numbers = itertools.count()
        self._pending = {}  # number to the handle, which is kept, and the function
        self._free = 0  # threads that await, or wait for the place
        self._threads = []
        self._is_closing = False

    def submit(self, handle, done):
        """Calls done() in a thread after the operation has ended."""
        with self._lock:
            if self._is_closing:
                raise RuntimeError("the interpreter is ending: no collective can call back")
            number = next(self._numbers)
            self._pending[number] = handle, done
            self._need_thread()
        _native.work_notify(handle, number)

    def _need_thread(self):
        if self._free == 0:
            self._free = 1
            thread = threading.Thread(target=self._run, name="rankrun-completions", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self):
        while True:
            with self._place:
                number = _native.next_ended()
            if number is None:
                return
            with self._lock:
                _, done = self._pending.pop(number)
                self._free -= 1
                if self._pending:
                    self._need_thread()
            done()
            with self._lock:
                self._free += 1

    def close(self):
        with self._lock:
            self._is_closing = True
        _native.end_notices()
        for thread in self._threads:
            thread.join(timeout=_LONGEST_JOIN)

    def forget(self):
        """In a fork, which has none of the threads."""
        _native.forget_notices()
        self.__init__()


_completions = _Completions()
submit = _completions.submit
atexit.register(_completions.close)
os.register_at_fork(after_in_child=_completions.forget)
