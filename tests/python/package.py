#!/usr/bin/env python3
"""The package rankrun without PyTorch. Usage: package.py RANKRUN, with the package in PYTHONPATH."""

import os
import subprocess
import sys
import tempfile
import unittest

RANKRUN = os.path.abspath(sys.argv.pop())


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_words(self, *words, code=0):
        environment = dict(
            os.environ,
            PATH=os.path.dirname(RANKRUN) + ":" + os.environ["PATH"],
            PYTHON_EXEC=sys.executable,
            OMP_NUM_THREADS="1",
        )
        done = subprocess.run(
            words, env=environment, cwd=self.folder.name, text=True,
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


unittest.main(verbosity=2)
