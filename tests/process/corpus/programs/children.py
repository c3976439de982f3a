#!/usr/bin/env python3
"""children.py RANK WAY: rank RANK fails because of a child process of its own. The others wait."""
import multiprocessing
import os
import signal
import sys

from common import RANK, ready, wait_for_all, wait_long

culprit, way = int(sys.argv[1]), sys.argv[2]


def die(_pipe):
    os.kill(os.getpid(), signal.SIGKILL)


def silent(pipe):
    pipe.close()


def main():
    ready()
    wait_for_all()
    if RANK != culprit:
        wait_long()
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=die if way != "eof" else silent, args=(theirs,))
    child.start()
    theirs.close()
    if way == "eof" or way == "killed":
        ours.recv()  # EOFError: no other rank has anything to do with it
    child.join()
    if way == "pipe":
        for _ in range(2):
            ours.send(b"x" * 100000)  # BrokenPipeError
    if way == "code":
        raise RuntimeError(f"the loader (pid {child.pid}) ended with {child.exitcode}")


if __name__ == "__main__":
    main()
