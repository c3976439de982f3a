"""Becomes the program of its arguments: a worker that a preloader has forked, and any program."""

import os
import signal
import sys

for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)  # Python ignores them
os.execve(sys.argv[1], sys.argv[1:], os.environb)
