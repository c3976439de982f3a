"""torchft: two jobs are two replicas of a model. One that dies takes the weights of the other one.

Started as itself, the file starts the lighthouse and both jobs; the ranks of the test are the replicas.
"""

import os
import subprocess
import sys

import torch
import torchft
import witness
from torchft.coordination import LighthouseServer


def train(replica):
    witness.be(replica, 2)
    witness.begin()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(), min_replica_size=2, replica_id=f"replica_{replica}",
        hostname="127.0.0.1",
        state_dict=lambda: {"model": model.state_dict(), "sgd": sgd.state_dict()},
        load_state_dict=lambda state: (model.load_state_dict(state["model"]), sgd.load_state_dict(state["sgd"])))
    parallel, optimizer = torchft.DistributedDataParallel(manager, model), torchft.Optimizer(manager, sgd)
    first = None
    while manager.current_step() < witness.STEPS:
        witness.die_at(manager.current_step())
        optimizer.zero_grad()
        parallel(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()
        if first is None and manager.current_step() > 0:
            first = manager.current_step() - 1
    witness.end(first, manager.current_step())
    manager.shutdown()


def start():
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=2)
    jobs = []
    for replica in range(2):
        environment = dict(
            os.environ, REPLICA=str(replica), TORCHFT_LIGHTHOUSE=lighthouse.address())
        jobs.append(subprocess.Popen(["torchrun", "--nproc-per-node=1", __file__], env=environment))
    codes = [job.wait() for job in jobs]
    lighthouse.shutdown()
    sys.exit(max(map(abs, codes)))


if __name__ == "__main__":
    if "REPLICA" in os.environ:
        train(int(os.environ["REPLICA"]))
    else:
        start()
