"""PyTorch's own client of the file timer, unmodified.

Local rank 0 finishes its scopes in time; local rank 1 is too slow in one.
"""

import os
import sys
import time

from torch.distributed.elastic import timer

timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

for _ in range(3):
    with timer.expires(after=60, scope="quick"):
        pass
with timer.expires(after=0.2, scope="slow"):
    if attempt == 0 and os.environ["RANK"] == "1":
        time.sleep(600)
print("done", flush=True)
sys.exit(0)
