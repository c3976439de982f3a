"""python -m rankrun: the launcher, for the Python that runs this."""

from rankrun import _programs

_programs.rankrun()
