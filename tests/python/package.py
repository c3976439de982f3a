#!/usr/bin/env python3
"""The package rankrun without PyTorch. Usage: package.py RANKRUN, with the package in PYTHONPATH."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

SLEEPER = """
import os, signal
import rankrun
def sleep():
    print("pid", os.getpid(), flush=True)
    signal.pause()
if __name__ == "__main__":
    rankrun.launch(sleep, 1, flags=["--prefix=none"])
"""
RANKRUN = os.path.abspath(sys.argv.pop())


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

        self.environment = dict(
            os.environ,
            PATH=os.path.dirname(RANKRUN) + ":" + os.environ["PATH"],
            PYTHON_EXEC=sys.executable,
            OMP_NUM_THREADS="1",
        )

    def run_words(self, *words, code=0):
        done = subprocess.run(
            words, env=self.environment, cwd=self.folder.name, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_the_demo_restarts_from_a_checkpoint(self):
        for command in ([sys.executable], [RANKRUN, "-n", "3", "--prefix", "none"]):
            output = self.run_words(*command, "-m", "rankrun.demo")
            self.assertIn("killed by SIGKILL, not sent by rankrun", output)
            self.assertIn("since step 200 in attempt 1", output)
            self.assertIn("both curves are equal, to the last bit", output)

    def test_flags_that_launch_needs_are_refused(self):
        program = "import rankrun; rankrun.launch(print, 1, flags=['--events=x'])"
        output = self.run_words(sys.executable, "-c", program, code=1)
        self.assertIn("ValueError: launch: --events=x in flags: launch uses it itself", output)

    def test_an_interrupt_of_a_caller_without_a_terminal_ends_the_job(self):
        path = os.path.join(self.folder.name, "sleeper.py")
        with open(path, "w") as file:
            file.write(SLEEPER)
        caller = subprocess.Popen(
            [sys.executable, path], env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        worker = int(caller.stdout.readline().split()[1])
        caller.send_signal(signal.SIGINT)
        _, errors = caller.communicate(timeout=60)
        self.assertEqual(caller.returncode, -signal.SIGINT, errors)
        self.assertIn("KeyboardInterrupt", errors)
        with self.assertRaises(ProcessLookupError):
            os.kill(worker, 0)


unittest.main(verbosity=2)
