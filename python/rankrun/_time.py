"""Time-outs as those of librankrun."""

import datetime


def milliseconds(limit):
    """Returns a timedelta in milliseconds, rounded up, and at least 1; None is -1, the default."""
    if limit is None:
        return -1
    if not isinstance(limit, datetime.timedelta):
        raise TypeError(f"timeout: want a datetime.timedelta, not {limit!r}")
    return max(1, -(-limit // datetime.timedelta(milliseconds=1)))
