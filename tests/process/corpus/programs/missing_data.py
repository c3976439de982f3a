#!/usr/bin/env python3
"""missing_data.py: a wrong path that all ranks have in common. Each notices it by itself."""
from common import ready, wait_for_all

ready()
wait_for_all()
with open("/data/imagenet/train.txt") as file:
    print(len(file.readlines()))
