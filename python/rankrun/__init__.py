"""rankrun for programs in Python."""

from rankrun._breakpoint import breakpoint

__all__ = ["breakpoint"]
