"""rankrun in a notebook. Usage: notebook.py, by a Python that has the package rankrun, nbclient,
ipykernel and cloudpickle; exit code 77: skipped, for want of one.
"""

import os
import sys
import tempfile
import textwrap
import unittest

try:
    import cloudpickle  # noqa: F401
    import ipykernel  # noqa: F401
    import nbformat
    from jupyter_client.manager import start_new_kernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
except ImportError as missing:
    print(f"skipped: {missing} (scripts/venv.sh installs it)")
    sys.exit(77)

BEGIN = """
import os, signal, sys, threading, time
import rankrun
"""


class Notebook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.environ.update(OMP_NUM_THREADS="1", HOME=self.folder.name)  # that of the reports
        os.environ.pop("RANKRUN_REPORT_DIR", None)

    def run_cell(self, text):
        """Returns the outputs of a cell, by kind: "stream", "display_data", "execute_result", "error"."""
        cell = nbformat.v4.new_code_cell(BEGIN + textwrap.dedent(text))
        notebook = nbformat.v4.new_notebook(cells=[cell])
        client = NotebookClient(
            notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": self.folder.name}})
        try:
            client.execute()
        except CellExecutionError:
            pass
        outputs = {}
        for output in cell.outputs:
            outputs.setdefault(output.output_type, []).append(output)
        return outputs

    def test_a_function_of_the_notebook(self):
        outputs = self.run_cell("""
            def add(x):
                print("rank", os.environ["RANK"], "adds", flush=True)
                return x + int(os.environ["RANK"])
            rankrun.launch(add, 2, 5)
            """)
        self.assertEqual(outputs["execute_result"][0].data["text/plain"], "[5, 6]")
        streams = "".join(output.text for output in outputs["stream"])
        for rank in range(2):
            self.assertIn(f"[{rank}] rank {rank} adds", streams)
        (shown,) = outputs["display_data"]
        self.assertRegex(shown.data["text/plain"], r"^rankrun: all workers have ended, 0 restarts, \d+ s$")
        self.assertIn("all workers have ended", shown.data["text/html"])

    def test_a_failure_shows_the_page_of_its_report(self):
        outputs = self.run_cell("""
            def fail():
                if os.environ["RANK"] == "1":
                    raise ValueError("no data")
                signal.pause()
            rankrun.launch(fail, 2)
            """)
        (error,) = outputs["error"]
        self.assertEqual(error.ename, "JobFailed")
        self.assertIn("cause: rank 1", error.evalue)
        line, page = outputs["display_data"]
        self.assertIn("rankrun: failed: rank 1 failed: exit code 1, 0 restarts", line.data["text/plain"])
        self.assertIn("<iframe srcdoc=", page.data["text/html"])
        self.assertIn("ValueError: no data", page.data["text/html"])
        self.assertIn("cause: rank 1", page.data["text/plain"])

    def test_no_page_where_no_report_is_kept(self):
        outputs = self.run_cell('rankrun.launch(os.abort, 1, flags=["--report-dir=/dev/null"])')
        self.assertEqual(len(outputs["display_data"]), 1)
        self.assertEqual(outputs["error"][0].ename, "JobFailed")

    def test_the_state_of_a_job_of_a_thread(self):
        outputs = self.run_cell("""
            def wait_for(path):
                while not os.path.exists(path):
                    time.sleep(0.01)
            name = f"of_notebook_{os.getpid()}"
            job = threading.Thread(
                target=rankrun.launch, args=(wait_for, 2, os.path.abspath("end")),
                kwargs={"flags": [f"--rdzv-id={name}"]})
            job.start()
            while True:
                try:
                    state = rankrun.status(name)
                    if "0 " in str(state).partition("LAST LINE")[2]:
                        break
                except RuntimeError as error:
                    assert "no job" in str(error), error
                time.sleep(0.05)
            open("end", "w")
            job.join()
            state
            """)
        data = outputs["execute_result"][0].data
        self.assertRegex(data["text/plain"], r"job of_notebook_\d+: running, 2 ranks")
        self.assertTrue(data["text/html"].startswith("<pre>job "))

    def test_an_interrupt_ends_the_job(self):
        manager, client = start_new_kernel(kernel_name="python3", cwd=self.folder.name)
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        request = client.execute(BEGIN + textwrap.dedent("""
            def up():
                print("up", os.getpid(), flush=True)
                signal.pause()
            rankrun.launch(up, 1)
            """))
        said = ""
        while "up" not in said:
            message = client.get_iopub_msg(timeout=60)
            said += message["content"].get("text", "")
        manager.interrupt_kernel()
        reply = {"parent_header": {"msg_id": None}}
        while reply["parent_header"]["msg_id"] != request:
            reply = client.get_shell_msg(timeout=60)
        self.assertEqual(reply["content"]["ename"], "KeyboardInterrupt")
        with self.assertRaises(ProcessLookupError):
            os.kill(int(said.split("up")[1].split()[0]), 0)


unittest.main(verbosity=2)
