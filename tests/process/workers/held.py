# held.py RANK CALLS [FILE]: calls rankrun.breakpoint(RANK) CALLS times. It then waits until
# FILE exists.

import os
import sys
import time

import rankrun

rank = int(os.environ["RANK"])


def stop(number):
    rankrun.breakpoint(int(sys.argv[1]))
    secret = 40 + number
    print("rank", rank, "is after stop", number, flush=True)
    return secret


for call in range(1, int(sys.argv[2]) + 1):
    stop(call)
print("rank", rank, "goes on", flush=True)
while len(sys.argv) > 3 and not os.path.exists(sys.argv[3]):
    time.sleep(0.001)
