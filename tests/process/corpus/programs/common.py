"""For the Python programs of the corpus: never run by itself."""
import os
import time

RANK = int(os.environ["RANK"])
SIZE = int(os.environ["WORLD_SIZE"])
ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
FOLDER = os.environ["CORPUS"]


def publish(name, text):
    """Makes a file whole, so that nobody reads half of it."""
    hidden = os.path.join(FOLDER, f".{name}.{ATTEMPT}.{RANK}")
    with open(hidden, "w") as file:
        file.write(text)
    os.rename(hidden, os.path.join(FOLDER, f"{name}.{ATTEMPT}.{RANK}"))


def read_of(name, rank, deadline=20.0):
    """Waits for the file that another rank publishes."""
    path = os.path.join(FOLDER, f"{name}.{ATTEMPT}.{rank}")
    end = time.monotonic() + deadline
    while True:
        try:
            with open(path) as file:
                return file.read()
        except FileNotFoundError:
            if time.monotonic() > end:
                raise SystemExit(f"rank {rank} has not published {name}")
            time.sleep(0.01)


def ready():
    publish("ready", str(os.getpid()))


def wait_for_all():
    for rank in range(SIZE):
        read_of("ready", rank)


def wait_long():
    """Waits as a worker does that has work left: until somebody ends it."""
    time.sleep(60)
    raise SystemExit("nobody has ended this rank for 60 s")
