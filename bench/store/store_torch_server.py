"""The store server of PyTorch by itself, for store_vs_torch.py.

Prints "127.0.0.1:PORT" and runs until SIGTERM, or until its standard input ends.
"""

import sys

from torch.distributed import TCPStore

# Kept until the end, because it owns the server, whose loop runs in another
# thread.
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=True)
print(f"127.0.0.1:{store.port}", flush=True)
sys.stdin.read()
