#!/usr/bin/env python3
"""survivor.py [REACTION]: workers with connections to each other; each fails at once when a peer is
lost. From the second attempt on they end with success."""
import os
import select
import sys

from common import ATTEMPT, ready, wait_for_all
from mesh import mesh

peers = mesh()
ready()
wait_for_all()
if ATTEMPT > 0:
    sys.exit(0)
readable, _, _ = select.select(list(peers.values()), [], [], 20)
if not readable:
    raise SystemExit("no peer was lost for 20 s")
if len(sys.argv) > 1:  # a program of few words
    os._exit(int(sys.argv[1]))
raise ConnectionResetError(104, "Connection reset by peer")
