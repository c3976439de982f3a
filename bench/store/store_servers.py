"""Starts the servers that store_vs_torch.py measures, each as one process."""

import functools
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

from comparison import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "release" / "bin"
VENV = pathlib.Path(os.environ.get("RANKRUN_TEST_VENV", ROOT / "build" / "venv"))

START_SECONDS = 120  # importing PyTorch from a cold disk is slow
STOP_SECONDS = 10

# PyTorch's server looks up the name of each client's address and waits for the
# answer. It stops after a first look-up that gets no answer, so only a
# nameserver that answers late slows it down.
LOCAL_NAMES = {"/etc/nsswitch.conf": "hosts: files\n"}
SLOW_NAMESERVER = "127.0.0.153"
SLOW_NAMES = {
    "/etc/nsswitch.conf": "hosts: dns\n",
    "/etc/resolv.conf": f"nameserver {SLOW_NAMESERVER}\n",
}
SLOW_NAMES_SECONDS = 0.1


def command_of(name):
    """Returns the command of a server that prints "ADDRESS:PORT" and runs until SIGTERM."""
    if name == "echo":
        return [BIN / "store_echo"]
    if name == "PyTorch":
        return [VENV / "bin" / "python", ROOT / "bench" / "store" / "store_torch_server.py"]
    return [BIN / "rankctl", "store", "serve", "--port", "0"]


def has_torch():
    return (VENV / "bin" / "python").exists()


@functools.cache
def mount_namespace():
    """Returns the prefix that runs a command with private files of /etc; none if forbidden."""
    for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        except FileNotFoundError:
            return []
    return []


def cores():
    """Returns one core for the server and one for the load; nothing if there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[-1]) if len(allowed) > 1 else None


def pinned(which):
    """Returns the prefix that pins a command to core 0 or 1: server and load must not share one."""
    return ["taskset", "--cpu-list", str(cores()[which])] if cores() else []


class SlowNameserver:
    """Nameserver that answers each question late, with "no such name"."""

    def __enter__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.socket.bind((SLOW_NAMESERVER, 53))
        except OSError as error:
            self.socket.close()
            if isinstance(error, PermissionError):
                raise  # not a failure, only forbidden
            raise Failed(f"start a nameserver at {SLOW_NAMESERVER}, port 53: "
                         f"{error.strerror}") from error
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.sendto(b"", (SLOW_NAMESERVER, 53))  # ends the thread
        self.thread.join()
        self.socket.close()

    def _answer(self):
        while True:
            question, asker = self.socket.recvfrom(1024)
            if not question:
                return
            time.sleep(SLOW_NAMES_SECONDS)
            # RFC 1035, 4.1.1: the number, "response, no such name", one question, no answers.
            header = question[:2] + b"\x81\x83" + question[4:6] + bytes(6)
            self.socket.sendto(header + question[12:], asker)


class Server:
    """A running server with a private view of some files of /etc."""

    def __init__(self, name, files):
        self.name = name
        self.folder = tempfile.TemporaryDirectory(prefix="store_bench.")
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+", encoding="utf-8")
        # setpriv follows unshare, which would undo it. The server ends with
        # this process.
        command = ["setpriv", "--pdeathsig", "TERM", *pinned(0),
                   *(str(word) for word in command_of(name))]
        self.process = subprocess.Popen(
            self._with_files(files, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        self.pid = self.process.pid  # each prefix command execs the next, so this is the server
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        self.port = line.strip().rpartition(":")[2]
        if not self.port.isdigit():
            errors = self.errors()
            self.stop()
            raise Failed(f"start the server {name}: it printed {line!r} instead of its port; "
                         f"its errors: {errors}")

    def _with_files(self, files, command):
        namespace = mount_namespace() if files else []
        if not namespace:
            return command
        script, arguments = "", []
        for number, (path, text) in enumerate(files.items()):
            private = pathlib.Path(self.folder.name) / str(number)
            private.write_text(text, encoding="utf-8")
            script += f'mount --bind "$1" {path} && shift && '
            arguments.append(str(private))
        return [*namespace, "sh", "-c", script + 'exec "$@"', "sh", *arguments, *command]

    def errors(self):
        self.log.flush()
        text = (pathlib.Path(self.folder.name) / "log").read_text(encoding="utf-8")
        return text.strip()[-1000:] or "none"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        self.log.close()
        self.folder.cleanup()


class Servers:
    """Several fresh servers for the duration of a `with` block."""

    def __init__(self, names, files):
        self.names, self.files, self.servers = names, files, {}

    def __enter__(self):
        try:
            for name in self.names:
                self.servers[name] = Server(name, self.files)
        except BaseException:
            self.__exit__()
            raise
        return self.servers

    def __exit__(self, *_):
        for server in self.servers.values():
            server.stop()
