"""Ctrl-C in each kind of wait of rankrun.distributed: KeyboardInterrupt, and an error on the other rank.

Usage: rankrun -n 2 interrupt.py BACKEND
"""

import array
import os
import signal
import sys
import threading
import time

from rankrun import distributed as dist

LATEST = 10  # seconds, far above the 100 ms that are promised, for a loaded machine


def interrupt_wait():
    """Sends SIGINT to this process once its main thread has stayed in one call of rankrun."""
    main, place, times = threading.main_thread().ident, None, 0
    while times < 5:
        frame = sys._current_frames()[main]
        is_in_call = frame.f_globals["__name__"].startswith("rankrun.distributed")
        now = (id(frame), frame.f_lasti)
        times = times + 1 if is_in_call and now == place else 0
        place = now
        time.sleep(0.002)
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)


def interrupted(call):
    """Returns how long a call goes on after Ctrl-C, in seconds."""
    threading.Thread(target=interrupt_wait, daemon=True).start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - sent
    raise AssertionError("the call has returned")


def main(backend):
    dist.init_process_group(backend)
    data = array.array("d", [1] * 1000)
    store = dist.HashStore()
    waits = {
        "all_reduce": lambda group: dist.all_reduce(data, group=group),
        "all_reduce and wait": lambda group: dist.all_reduce(data, group=group, async_op=True).wait(),
        "recv": lambda group: dist.recv(data, 1, group),
        "barrier": lambda group: dist.barrier(group),
        "monitored_barrier": lambda group: dist.monitored_barrier(group),
        "all_gather_object": lambda group: dist.all_gather_object([None, None], 1, group),
        "get of a store": lambda group: store.get("absent"),
    }
    for name, wait in waits.items():
        group = dist.new_group()
        key = bytearray(1)
        if dist.get_rank() == 0:
            took = interrupted(lambda: wait(group))
            if took > LATEST:
                raise AssertionError(f"{name}: Ctrl-C took {took:.1f} s")
            print(f"{name}: Ctrl-C took {took * 1000:.0f} ms")
        dist.broadcast(key, 0)  # the other rank calls only then
        if dist.get_rank() == 1 and "store" not in name and "wait" not in name:
            try:
                dist.barrier(group) if name == "recv" else wait(group)
            except dist.DistError as error:
                if "interrupted by the program" not in str(error):
                    raise
            else:
                raise AssertionError(f"{name}: rank 1 has no error")
        dist.barrier()
    dist.destroy_process_group()
    print("passed")


main(sys.argv[1])
