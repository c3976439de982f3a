"""The backend "rankrun" of torch.distributed: collectives of CPU memory by librankrun.

PyTorch 2.5 and newer find it by themselves: init_process_group("rankrun") needs no import. A
program for 2.4 imports this module first.
"""

import os

__all__ = ["monitored_barrier", "register"]

NAME = "rankrun"


def register():
    """Makes the backend known to torch.distributed, once. PyTorch calls it."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])
    if os.environ.get("RANKRUN_AS_GLOO", "0") not in ("", "0"):
        _require_native()
        from rankrun.torch import _as_gloo

        _as_gloo.begin()


def _create(options, group_options):
    _require_native()
    from rankrun.torch import _group

    return _group.create(options, group_options)


def _require_native():
    try:
        import rankrun._native  # noqa: F401
    except ImportError as error:
        raise RuntimeError(
            f"the backend {NAME} needs the module rankrun._native, which wheels of rankrun have for "
            f"CPython 3.9 and newer, and builds with headers of CPython 3.11 or newer: {error}"
        ) from error


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """As torch.distributed.monitored_barrier, which refuses each backend but gloo up to 2.13.

    The error names the ranks that did not come: rank 0 raises it after the time-out (a timedelta;
    None: the group's), with wait_all_ranks for all of them instead of the first.
    """
    import torch.distributed as dist
    from rankrun.torch._group import ProcessGroup

    if group is None:
        group = dist.group.WORLD
    if not isinstance(group, ProcessGroup):
        raise ValueError(f"monitored_barrier: want a group of the backend {NAME}, not {group}")
    group.monitored_barrier(timeout, wait_all_ranks)


register()
