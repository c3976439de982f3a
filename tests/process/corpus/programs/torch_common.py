"""For the programs of the corpus that use PyTorch: never run by itself."""
import torch
import torch.distributed as dist

from common import ready, wait_for_all


def sums(steps):
    for _ in range(steps):
        dist.all_reduce(torch.ones(100))


def run(way, is_in_group=True):
    """Calls `way`: in the default group, or before there is one."""
    torch.set_num_threads(1)
    if is_in_group:
        dist.init_process_group("gloo")
        ready()
        wait_for_all()
    way()
    if dist.is_initialized():
        dist.destroy_process_group()
