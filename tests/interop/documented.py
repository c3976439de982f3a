"""tests/comm/torch_distributed.txt has every public name of PyTorch's torch.distributed, and the
arguments of its functions. A unit test compares the list with docs/torch-distributed.md. It is the
list of PyTorch 2.14; older versions lack some of it."""
import inspect
import pathlib
import re
import types

import torch
import torch.distributed as dist
import torch.distributed.algorithms
import torch.distributed.device_mesh
import torch.distributed.launcher
import torch.distributed.rpc as rpc
import torch.multiprocessing

LIST = pathlib.Path(__file__).parents[1] / "comm/torch_distributed.txt"
IS_OLDER = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)
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


def public_names():
    names = set(members("", dist))
    for name in ("Backend BackendConfig GroupMember ReduceOp Work Store TCPStore HashStore "
                 "FileStore PrefixStore ProcessGroup DeviceMesh").split():
        names |= set(members(name + ".", getattr(dist, name)))
    names |= set(members("rpc.", rpc, rpc.__all__))
    for module in (rpc.functions, rpc.backend_registry, rpc.constants):
        own = [name for name, value in vars(module).items()
               if getattr(value, "__module__", module.__name__) == module.__name__]
        prefix = module.__name__.removeprefix("torch.distributed.") + "."
        names |= set(members(prefix, module, own))
    for name in "RRef WorkerInfo TensorPipeRpcBackendOptions".split():
        names |= set(members(f"rpc.{name}.", getattr(rpc, name)))
    names |= set(members("algorithms.", torch.distributed.algorithms))
    for name in "Join Joinable JoinHook".split():
        names |= set(members(f"algorithms.{name}.", getattr(torch.distributed.algorithms, name)))
    names |= set(members("device_mesh.", torch.distributed.device_mesh, dist.device_mesh.__all__))
    return names | set(members("launcher.", torch.distributed.launcher))


def documented_arguments(function):
    """Returns the arguments of a C++ function: those of its signature if it names them, otherwise
    those that its text describes."""
    text = function.__doc__ or ""
    signatures = re.findall(r"^\s*(?:\d\. )?\w+\((?:self: [\w.]+(?:, )?)?(.*)\) -> ", text, re.M)
    in_signatures = [name for signature in signatures for name in re.findall(
        r"(?:^|, )(\w+): ", re.sub(r"\[[^\]]*\]", "", signature))]
    named = [name for name in in_signatures if not re.match(r"arg\d", name)]
    if named == in_signatures and named:
        return named
    described = re.findall(r"Arguments:\n(.*?)(?:\n\s*\n|\Z|Example)", text, re.S)
    return named + re.findall(r"^\s+(\w+) \(", "\n".join(described), re.M)


def arguments(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        is_class = inspect.isclass(function)
        return set(documented_arguments(function.__init__ if is_class else function))
    return {name for name in parameters if name != "self" and not name.startswith("_")}


def find(name):
    """Returns the object of a listed name; None for names outside of the two packages."""
    owner = dist
    if name.startswith("torch.multiprocessing."):
        owner, name = torch.multiprocessing, name.rpartition(".")[2]
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


listed, compared = set(), 0
for line in LIST.read_text().splitlines():
    name, _, rest = line.partition("(")
    listed.add(name)
    if rest and (function := find(name)):
        compared += 1
        ours = {name for name in re.findall(r"\w+", rest) if not name.startswith("_")}
        theirs = arguments(function)
        is_same = theirs <= ours if IS_OLDER else theirs == ours
        assert is_same, f"{name} has {sorted(theirs)}, not {sorted(ours)}"

wanted = public_names()
missing = sorted(wanted - listed)
assert len(wanted) > 250, len(wanted)
assert compared > 80, compared
assert not missing, f"{LIST} lacks: {', '.join(missing)}"
print(f"the list has {len(wanted)} names of torch.distributed, and arguments of {compared} functions")
