"""Every public name of PyTorch's torch.distributed has a row in docs/torch-distributed.md."""
import pathlib
import re
import types

import torch.distributed as dist
import torch.distributed.algorithms
import torch.distributed.device_mesh
import torch.distributed.launcher
import torch.distributed.rpc as rpc

PAGE = pathlib.Path(__file__).parents[2] / "docs/torch-distributed.md"
# Imports of the package, and methods of str, from which Backend is derived.
FOREIGN = {"log", "timedelta"} | set(dir(str))


def members(prefix, owner, names=None):
    """Yields the public names of `owner`, without modules and inherited names."""
    inherited = {name for base in getattr(owner, "__mro__", [])[1:] for name in dir(base)}
    for name in names or dir(owner):
        if name.startswith("_") or name in FOREIGN | inherited:
            continue
        if hasattr(owner, name) and not isinstance(getattr(owner, name), types.ModuleType):
            yield prefix + name


documented = set(re.findall(r"`([^`]+)`", " ".join(
    line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `"))))
wanted = set(members("", dist))
for name in ("Backend BackendConfig GroupMember ReduceOp Work Store TCPStore HashStore FileStore "
             "PrefixStore ProcessGroup DeviceMesh").split():
    wanted |= set(members(name + ".", getattr(dist, name)))
wanted |= set(members("rpc.", rpc, rpc.__all__))
for module in (rpc.functions, rpc.backend_registry, rpc.constants):
    own = [name for name, value in vars(module).items()
           if getattr(value, "__module__", module.__name__) == module.__name__]
    wanted |= set(members(module.__name__.removeprefix("torch.distributed.") + ".", module, own))
for name in "RRef WorkerInfo TensorPipeRpcBackendOptions".split():
    wanted |= set(members(f"rpc.{name}.", getattr(rpc, name)))
wanted |= set(members("algorithms.", torch.distributed.algorithms))
for name in "Join Joinable JoinHook".split():
    wanted |= set(members(f"algorithms.{name}.", getattr(torch.distributed.algorithms, name)))
wanted |= set(members("device_mesh.", torch.distributed.device_mesh, dist.device_mesh.__all__))
wanted |= set(members("launcher.", torch.distributed.launcher))

missing = sorted(wanted - documented)
assert len(wanted) > 250, len(wanted)
assert not missing, f"{PAGE} has no row for: {', '.join(missing)}"
print(f"{len(wanted)} names of torch.distributed have a row")
