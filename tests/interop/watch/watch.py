"""watch.py PROGRAM: PyTorch 1.13's watchKey on rankrun's server and on its own.

All replies and all callbacks must be the same on both.
"""
import os
import queue
import subprocess
import sys
import threading

DEADLINE = 30
# Client name and a command of old_store.cc.
SCRIPT = [line.split(" ", 1) for line in """
a watch k
b set k one
b set k one
b set k two
a set k three
b set n 12
a watch n
b add n 5
b add n -20
b add n 0
b delete n
b delete n
b add n 1
b replace k wrong four
b replace k three four
b replace k four four
a watch created
b replace created expected value
b create created value
b create created other
b delete created
b set created again
b watch k
b set k both
a set k of-both
a watch k
b set k twice
b delete k
b set k
b set k not-empty
a get k
b get n
""".strip().split("\n")]


class Client:
    """A process of old_store.cc; its callbacks are collected."""

    def __init__(self, program, kind, port):
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        self._answers, self._changes = queue.Queue(), queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = self.ask(f"{kind} {port}")

    def _read(self):
        for line in self._process.stdout:
            is_change = line.startswith("changed ")
            (self._changes if is_change else self._answers).put(line.rstrip("\n"))

    def ask(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answers.get(timeout=DEADLINE)

    def changes_until(self, last):
        changes = []
        while not changes or changes[-1] != last:
            changes.append(self._changes.get(timeout=DEADLINE))
        return changes[:-1]

    def end(self):
        self._process.stdin.close()
        assert self._process.wait(DEADLINE) == 0
        self._reader.join()


def transcript(program, port):
    clients = {name: Client(program, "client", port) for name in "ab"}
    fences = Client(program, "client", port)
    for client in clients.values():
        client.ask("watch fence")
    results = []
    for number, (name, command) in enumerate(SCRIPT):
        answer = clients[name].ask(command)
        # A SET has no reply, so wait for a later request of the same client.
        clients[name].ask("add carried-out 0")
        fences.ask(f"set fence {number}")
        before = "x" + str(number - 1).encode().hex() if number else "-"
        fence = f"changed fence {before} x{str(number).encode().hex()}"
        heard = {other: client.changes_until(fence) for other, client in clients.items()}
        results.append((name, command, answer, heard))
    for client in [*clients.values(), fences]:
        client.end()
    return results


program = sys.argv[1]
server = Client(program, "server", 0)
expected = transcript(program, server.port)
server.end()
result = transcript(program, os.environ["MASTER_PORT"])
for ours, theirs in zip(result, expected):
    print("same" if ours == theirs else f"DIFFERENT\n  rankrun: {ours}\n  PyTorch: {theirs}")
assert result == expected
assert sum(len(heard["a"]) for _, _, _, heard in expected) > 20  # the comparison is not empty
