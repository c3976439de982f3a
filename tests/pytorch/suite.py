"""Runs PyTorch's own tests of its process groups (distributed_test.py, which its wheel has).

Usage: suite.py BACKEND RANKS [NAME...]

Each test has its own processes, which are forks. Tests of GPUs are left out. NAME: only tests whose
names contain one of these. Exit code 1: others have failed than AS_GLOO, with BACKEND gloo, else any.
"""

import multiprocessing
import os
import sys
import tempfile
import unittest

# The tests that fail as "gloo" (RANKRUN_AS_GLOO=1), because they want ...
AS_GLOO = {
    # ... texts of Gloo's errors
    "test_barrier_timeout_full_group",
    "test_monitored_barrier_gloo",
    "test_monitored_barrier_gloo_rank_0_timeout",
    "test_monitored_barrier_gloo_subgroup",
    # ... its class in C++
    "test_ddp_logging_data_cpu",
}
GPU_WORDS = ("cuda", "nccl", "gpu")


class Result(unittest.TextTestResult):
    """Prints each failure at once, with the end of its output."""

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print(self.failures[-1][1], flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        print(self.errors[-1][1], flush=True)


def make_suite(names):
    from torch.testing._internal.distributed import distributed_test

    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

    def is_wanted(name):
        if any(word in name for word in GPU_WORDS):
            return False
        return not names or any(each in name for each in names)

    loaded = unittest.defaultTestLoader.getTestCaseNames(Suite)
    return unittest.TestSuite(Suite(name) for name in loaded if is_wanted(name))


def main(backend, ranks, *names):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BACKEND=backend, WORLD_SIZE=ranks, TEMP_DIR=folder,
                          INIT_METHOD="env://", MASTER_ADDR="127.0.0.1")
        suite = make_suite(names)
        result = unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
    failed = {test._testMethodName for test, _ in result.failures + result.errors}
    expected = AS_GLOO if backend == "gloo" and not names else set()
    passed = result.testsRun - len(failed) - len(result.skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    if passed == 0:
        return "suite.py: no test has passed"
    if failed == expected:
        return 0
    return f"suite.py: failed: {sorted(failed)}, want {sorted(expected)}"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
