#!/usr/bin/env python3
"""library.py NODE: a library is missing on one node, whose ranks fail; the others wait for them."""
import ctypes
import os
import sys

from common import ready, wait_for_all, wait_long

ready()
wait_for_all()
if os.environ["GROUP_RANK"] == sys.argv[1]:
    ctypes.CDLL("libcudart.so.11.0")
wait_long()
