"""Tools above torchrun, with RANKRUN_AS_TORCHRUN=1 alone: rankrun starts their workers, and starts them
again after a death. Usage: run.py [NAME], by a Python that has the package rankrun and the tool NAME; exit
code 77: it has no such tool.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
RANKS = ["--nproc-per-node=2"]
# By the name of a tool: the module that it needs, and a command that has two workers.
TOOLS = {
    "accelerate_launch": (
        "accelerate", ["accelerate", "launch", "--multi_gpu", "--num_processes=2", "--max_restarts=1",
        "of_accelerate.py"]),
    "accelerate_notebook_launcher": ("accelerate", ["python", "-c", (
        "import accelerate, of_accelerate;"
        "accelerate.notebook_launcher(of_accelerate.train, num_processes=2, use_port='0', max_restarts=1)")]),
    "fabric_run": ("lightning", ["fabric", "run", "--accelerator=cpu", "--devices=2", "of_fabric.py"]),
    "lightning_trainer": ("lightning", ["torchrun", *RANKS, "of_lightning.py"]),
    "transformers_trainer": ("transformers", ["torchrun", *RANKS, "of_transformers.py"]),
    "trl_trainer": ("trl", ["torchrun", *RANKS, "of_trl.py"]),
    "tune_run": (
        "torchtune", ["tune", "run", *RANKS, "of_torchtune.py", "--config", "of_torchtune.yaml"]),
    "torchx_local": ("torchx", [
        "torchx", "run", "--scheduler=local_cwd", "--log", "dist.ddp", "-j=1x2", "--script=of_torch.py"]),
    "torchtnt": ("torchtnt", ["python", "of_torchtnt.py"]),
    "torchft": ("torchft", ["python", "of_torchft.py"]),
    "deepspeed": ("deepspeed", ["torchrun", *RANKS, "of_deepspeed.py"]),
}


class Tools(unittest.TestCase):
    def run_tool(self, command, **variables):
        """Returns the output of a tool whose program has done all its steps."""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(
                os.environ,
                RANKRUN_AS_TORCHRUN="1",
                TOOL_FOLDER=folder,
                OMP_NUM_THREADS="1",
                PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"],
                HF_HUB_OFFLINE="1",
                **variables,
            )
            environment.pop("PYTHON_EXEC", None)
            done = subprocess.run(
                command, env=environment, cwd=PROGRAMS, text=True, errors="replace",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 below rankrun-agent", done.stdout)
        return done.stdout


def add_tests(name, command):
    def test_plain(self):
        output = self.run_tool(command)
        for rank in range(2):
            self.assertIn(f"rank {rank} has done steps 0 to 6", output)

    def test_with_a_killed_worker(self):
        output = self.run_tool(command, TOOL_DIES="1", PET_MAX_RESTARTS="1")
        self.assertIn("killed by SIGKILL, not sent by rankrun", output)
        # torchft's rank 0 does not start again, and the last step before a death may not count.
        self.assertRegex(output, r"rank 1 has done steps [34] to 6")
        self.assertRegex(output, r"rank 0 has done steps [034] to 6")

    setattr(Tools, f"test_{name}", test_plain)
    setattr(Tools, f"test_{name}_with_a_killed_worker", test_with_a_killed_worker)


def main():
    chosen = sys.argv[1:] or list(TOOLS)
    for name in chosen:
        module, command = TOOLS[name]
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no module {module} (scripts/venv.sh --tools installs it)")
            sys.exit(77)
        add_tests(name, command)
    unittest.main(argv=sys.argv[:1], verbosity=2)


main()
