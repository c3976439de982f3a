"""Shared parts of allreduce_vs_peers.py, hierarchy.py and store_vs_torch.py."""

import argparse
import os
import signal
import sys
import time

IDLE_LOAD = 0.5
LONGEST_WAIT_FOR_IDLE_SECONDS = 300


class Failed(Exception):
    """A program could not be measured."""


def wait_for_idle_machine():
    for _ in range(LONGEST_WAIT_FOR_IDLE_SECONDS):
        if os.getloadavg()[0] < IDLE_LOAD:
            return
        time.sleep(1)
    raise Failed(f"measure: the load is still {os.getloadavg()[0]:.2f} after "
                 f"{LONGEST_WAIT_FOR_IDLE_SECONDS} s, it must be below {IDLE_LOAD}; "
                 "--any-load measures anyway")


def judge(what, measured, target, met):
    """Prints whether a figure meets its target. `measured` is its text, `met` is None without it."""
    verdict = "not measured" if met is None else "met" if met else "MISSED"
    print(f"  {what:<58} {measured:>10}   target {target:<8} {verdict}")


def run(name, description, compare, add_options=None):
    """Parses the command line and calls `compare(arguments)`; exits with 1 if it raises Failed.

    `add_options(parser)` adds the options of this comparison.
    """
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--quick", action="store_true",
                        help="one short round, whatever the load: to see that it works")
    parser.add_argument("--any-load", action="store_true", help="do not wait for an idle machine")
    if add_options is not None:
        add_options(parser)
    arguments = parser.parse_args()
    # SIGTERM raises SystemExit, so that the measured programs are stopped.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if not (arguments.quick or arguments.any_load):
            wait_for_idle_machine()
        compare(arguments)
    except Failed as failure:
        sys.exit(f"{name}: {failure}")
