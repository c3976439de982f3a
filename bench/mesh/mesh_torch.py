"""Time of init_device_mesh, for mesh.sh; as mesh_rankrun.cc."""

import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

torch.set_num_threads(1)
dist.init_process_group("gloo")
for _ in range(int(sys.argv[3])):
    dist.barrier()
    began = time.monotonic()
    init_device_mesh("cpu", (int(sys.argv[1]), int(sys.argv[2])))
    dist.barrier()
    if dist.get_rank() == 0:
        print(time.monotonic() - began, flush=True)
dist.destroy_process_group()
