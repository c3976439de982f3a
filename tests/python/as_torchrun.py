"""RANKRUN_AS_TORCHRUN=1 with PyTorch: rankrun starts the workers, and callers of PyTorch's functions get
what PyTorch gives them. Usage: as_torchrun.py, by a Python that has both packages.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

WORKER = """
import os
agent = open(f"/proc/{os.getppid()}/comm").read().strip()
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "below", agent, flush=True)
"""
CONFIG = """
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
def config(**options):
    return LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, run_id="job", max_restarts=0,
                        rdzv_backend="c10d", rdzv_endpoint="localhost:0", **options)
"""
# Like the script that pip writes for an entry point.
SCRIPT = """
import sys
from torch.distributed.run import main
if __name__ == "__main__":
    sys.exit(main())
"""


class AsTorchrun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.worker = self.write("worker.py", WORKER)

    def write(self, name, text):
        path = Path(self.folder.name, name)
        path.write_text(textwrap.dedent(text))
        return str(path)

    def run_python(self, *words, variable="1", code=0):
        environment = dict(os.environ, RANKRUN_AS_TORCHRUN=variable, OMP_NUM_THREADS="1")
        environment.pop("PYTHON_EXEC", None)
        done = subprocess.run(
            [sys.executable, *words], env=environment, cwd=self.folder.name, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def expect_rankrun(self, output):
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 below rankrun-agent", output)

    def test_the_module(self):
        for options in (["-m", "torch.distributed.run"], ["-u", "-mtorch.distributed.run"]):
            self.expect_rankrun(self.run_python(*options, "--nproc-per-node=2", self.worker))

    def test_which_command_lines_run_torchrun(self):
        from rankrun._as_torchrun import _command

        run = ["-m", "torch.distributed.run", "-n", "2", "x.py"]
        for options in ([], ["-u"], ["-W", "ignore"], ["-Xdev", "-B"], ["--check-hash-based-pycs", "always"]):
            self.assertEqual(_command(options + run), ("torchrun", ["-n", "2", "x.py"]))
        self.assertEqual(_command(["-um", "torch.distributed.run"]), ("torchrun", []))
        self.assertEqual(_command(["-m", "torch.distributed.launch", "a"]), ("rankrun-launch", ["a"]))
        for words in ([], ["-c", "-m", *run], ["x.py", *run], ["-m", "pdb", *run], ["-"], ["-m"]):
            self.assertIsNone(_command(words), words)

    def test_the_older_module(self):
        output = self.run_python(
            "-m", "torch.distributed.launch", "--use-env", "--nproc-per-node=2", self.worker)
        self.expect_rankrun(output)

    def test_the_script(self):
        script = self.write("torchrun", SCRIPT)
        self.expect_rankrun(self.run_python(script, "--nproc-per-node=2", self.worker))

    def test_another_script_of_this_name_is_left_alone(self):
        script = self.write("torchrun", "import sys; print('mine', sys.argv[1:])")
        self.assertIn("mine ['-m', 'x']", self.run_python(script, "-m", "x"))

    def test_without_the_variable_nothing_changes(self):
        for variable in ("", "0"):
            program = "import sys; print([f for f in sys.meta_path if 'rankrun' in repr(f)])"
            self.assertEqual(self.run_python("-c", program, variable=variable).strip(), "[]")

    def test_run_main_in_a_process(self):
        caller = self.write("caller.py", f"""
            from torch.distributed import run
            run.main(["--nproc-per-node=2", {self.worker!r}])
            print("went on")
            """)
        output = self.run_python(caller)
        self.expect_rankrun(output)
        self.assertIn("went on", output)

    def test_a_function_returns_results_by_rank(self):
        caller = self.write("caller.py", CONFIG + textwrap.dedent("""
            import os
            def work(text, number):
                return int(os.environ["RANK"]), text * number, os.getppid()
            if __name__ == "__main__":
                for method in ("spawn", "fork"):
                    results = elastic_launch(config(start_method=method), work)("a", 3)
                    parents = {parent for _, _, parent in results.values()}
                    print({rank: values[:2] for rank, values in results.items()}, len(parents))
            """))
        self.assertEqual(self.run_python(caller).count("{0: (0, 'aaa'), 1: (1, 'aaa')} 1"), 2)

    def test_a_failed_function_raises_child_failed_error(self):
        caller = self.write("caller.py", CONFIG + textwrap.dedent("""
            import os
            from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
            def work():
                if os.environ["RANK"] == "1":
                    raise ValueError("no luck")
            if __name__ == "__main__":
                try:
                    elastic_launch(config(), work)()
                except ChildFailedError as error:
                    rank, failure = error.get_first_failure()
                    print("failed:", error.name, rank, failure.exitcode, failure.message["message"])
            """))
        output = self.run_python(caller)
        self.assertIn("failed: work 1 1 ValueError: no luck", output)
        self.assertIn("rank 1", output.split("failed:")[0])  # the page

    def test_a_killed_command_raises_child_failed_error(self):
        program = self.write("dies.py", "import os; os.kill(os.getpid(), 9)")
        caller = self.write("caller.py", CONFIG + textwrap.dedent(f"""
            import sys
            from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
            try:
                elastic_launch(config(), sys.executable)({program!r})
            except ChildFailedError as error:
                print("failed:", error.name, {{f.exitcode for f in error.failures.values()}})
            """))
        self.assertRegex(self.run_python(caller), r"failed: .*dies.py \{-9\}")

    def test_what_rankrun_has_not_stays_with_pytorch(self):
        caller = self.write("caller.py", CONFIG + textwrap.dedent("""
            import os
            def work():
                return open(f"/proc/{os.getppid()}/comm").read().strip()
            if __name__ == "__main__":
                from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
                class OwnLogs(DefaultLogsSpecs):
                    pass
                print(elastic_launch(config(logs_specs=OwnLogs()), work)())
            """))
        output = self.run_python(caller)
        self.assertIn("PyTorch launches this job itself: rankrun has no logs_specs OwnLogs", output)
        self.assertNotIn("rankrun-agent", output)

    def test_rankrun_launch(self):
        caller = self.write("caller.py", """
            import os
            import rankrun
            def work(number):
                if number < 0 and os.environ["RANK"] == "1":
                    raise ValueError("no luck")
                return number + int(os.environ["RANK"])
            def leave():
                if os.environ["RANK"] == "1":
                    raise SystemExit(0)
                return int(os.environ["RANK"])
            if __name__ == "__main__":
                print(rankrun.launch(work, 3, 10))
                print(rankrun.launch(leave, 3))
                try:
                    rankrun.launch(work, 2, -1)
                except rankrun.JobFailed as error:
                    print("rank", error.rank, "code", error.code, "no luck" in error.error)
            """)
        output = self.run_python(caller, variable="")
        self.assertIn("[10, 11, 12]", output)
        self.assertIn("[0, None, 2]", output)
        self.assertIn("rank 1 code 1 True", output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
