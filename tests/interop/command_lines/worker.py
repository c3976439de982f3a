"""What a worker was given, as one line of JSON in a file of its own."""
import json
import os
import sys

names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS",
         "TORCHELASTIC_RESTART_COUNT"]
if os.environ.get("WITH_RUN_ID"):
    names.append("TORCHELASTIC_RUN_ID")
given = {"argv": sys.argv, "folder": os.getcwd(), "variables": {n: os.environ[n] for n in names}}
with open(os.path.join(os.environ["GIVEN"], os.environ["RANK"]), "w") as file:
    json.dump(given, file, sort_keys=True)
