"""Runs the vectors of tests/comm/vectors.json by rankrun.distributed over numpy arrays.

Usage: rankrun -n 8 vectors.py BACKEND. A vector of fewer ranks runs in a group of the first ones.
"""

import json
import os
import pathlib
import sys

import numpy as np

from rankrun import distributed as dist
from rankrun.distributed import _cbor

VECTORS = pathlib.Path(__file__).parents[2] / "comm/vectors.json"
DTYPES = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "bool": np.bool_}
# These need a process of their own, or break their group; tests in C++ have them.
LEFT_OUT = {"fork", "late", "abort"}


def array_of(vector, values):
    if vector["dtype"] == "c64":
        pairs = np.array(values, np.float32)
        return pairs.reshape(*pairs.shape[:-1], 2).view(np.complex64).reshape(pairs.shape[:-1])
    return np.array(values, DTYPES[vector["dtype"]])


def arrays_of(vector, lists):
    return [array_of(vector, values) for values in lists]


class Case:
    """A vector on this rank. Its methods are named like the operations, and return the output."""

    def __init__(self, vector, group):
        self.vector = vector
        self.group = group
        self.rank = group.rank()
        self.size = group.size()
        own = vector["in"]
        self.values = own[self.rank] if isinstance(own, list) and len(own) == self.size else own

    def input(self):
        return array_of(self.vector, self.values)

    def inputs(self):
        return arrays_of(self.vector, self.values) if self.values is not None else None

    def expected(self):
        return array_of(self.vector, self.vector["out"][self.rank])

    def outputs(self):
        """Returns arrays for the results of this rank, which is all but their values."""
        return [np.zeros_like(each) for each in arrays_of(self.vector, self.vector["out"][self.rank])]

    def op(self):
        name = self.vector.get("reduce", "SUM")
        if name == "PREMUL_SUM":
            return dist.ReduceOp.premul_sum(self.vector["factor"][self.rank])
        return dist.ReduceOp[name]

    def all_reduce(self):
        tensor = self.input()
        dist.all_reduce(tensor, self.op(), self.group)
        return tensor

    def all_reduce_async_then_add(self):
        tensor = self.input()
        dist.all_reduce(tensor, self.op(), self.group, async_op=True).wait()
        return tensor + self.vector["then_add"]

    def divide_then_all_reduce_async(self):
        tensor = self.input() / self.size
        tensor = tensor.astype(np.float32)
        assert dist.all_reduce(tensor, group=self.group, async_op=True).wait()
        return tensor

    def all_gather(self):
        outputs = self.outputs()
        dist.all_gather(outputs, self.input(), self.group)
        return outputs

    def all_gather_into_tensor(self):
        output = np.zeros(self.vector["out_shape"], self.input().dtype)
        dist.all_gather_into_tensor(output, self.input(), self.group)
        return output

    def gather(self):
        is_root = self.rank == self.vector["root"]
        outputs = self.outputs() if is_root else None
        dist.gather(self.input(), outputs, group=self.group, group_dst=self.vector["root"])
        return outputs

    def scatter(self):
        output = np.zeros_like(self.expected())
        dist.scatter(output, self.inputs(), group=self.group, group_src=self.vector["root"])
        return output

    def broadcast(self):
        tensor = self.input()
        dist.broadcast(tensor, group=self.group, group_src=self.vector["root"])
        return tensor

    def reduce(self):
        tensor = self.input()
        dist.reduce(tensor, None, self.op(), self.group, group_dst=self.vector["root"])
        return tensor if self.rank == self.vector["root"] else None

    def reduce_scatter(self):
        output = np.zeros_like(self.expected())
        dist.reduce_scatter(output, self.inputs(), self.op(), self.group)
        return output

    def reduce_scatter_tensor(self):
        output = np.zeros_like(self.expected())
        dist.reduce_scatter_tensor(output, self.input(), self.op(), self.group)
        return output

    def all_to_all(self):
        outputs = self.outputs()
        dist.all_to_all(outputs, self.inputs(), self.group)
        return outputs

    def all_to_all_single(self):
        output = np.zeros_like(self.expected())
        splits = [self.vector.get(name) for name in ("out_splits", "in_splits")]
        own = [each and each[self.rank] for each in splits]
        dist.all_to_all_single(output, self.input(), *own, self.group)
        return output

    def batch_isend_irecv(self):
        received = np.zeros_like(self.expected())
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, self.input(), group=self.group,
                       group_peer=(self.rank + 1) % self.size),
            dist.P2POp(dist.irecv, received, group=self.group,
                       group_peer=(self.rank - 1) % self.size),
        ])
        for work in works:
            work.wait()
        return received

    def isend_irecv_self(self):
        received = np.zeros_like(self.expected())
        receive = dist.irecv(received, group=self.group, group_src=self.rank)
        dist.isend(self.input(), group=self.group, group_dst=self.rank).wait()
        receive.wait()
        return received

    def recv_any(self):
        if self.rank != 0:
            return dist.send(self.input(), group=self.group, group_dst=0)
        pairs = []
        for _ in range(self.size - 1):
            tensor = np.zeros(1, np.int64)
            pairs.append([dist.recv(tensor, group=self.group), int(tensor[0])])
        assert sorted(pairs) == self.vector["out"]["rank0_set"], pairs

    def send_tags(self):
        if self.rank == 0:
            for tag, values in self.values["0"]:
                dist.send(array_of(self.vector, values), 1, self.group, int(tag[3:]))
            return
        tensor = np.zeros(1, np.int64)
        for tag, text in ((6, "recv_tag6_first"), (5, "then_tag5")):
            dist.recv(tensor, 0, self.group, tag)
            assert tensor.tolist() == self.vector["out"]["1"][text], (tag, tensor)

    def all_reduce_in_groups(self):
        tensor = self.input()
        for ranks in self.vector["groups"]:
            group = dist.new_group(ranks)
            if self.rank in ranks:
                dist.all_reduce(tensor, self.op(), group)
        return tensor

    def rank_translation(self):
        want = self.vector["out"]
        group = dist.new_group(want["ranks"])
        if self.rank not in want["ranks"]:
            assert dist.get_rank(group) == want["rank_on_0"]
            assert dist.get_world_size(group) == want["size_on_0"]
            return
        assert dist.get_group_rank(group, 3) == want["group_rank_of_3"]
        assert dist.get_global_rank(group, 0) == want["global_rank_of_0"]
        assert dist.get_process_group_ranks(group) == want["ranks"]

    def broadcast_in_group(self):
        tensor = self.input()
        group = dist.new_group(self.vector["group"])
        if self.rank in self.vector["group"]:
            dist.broadcast(tensor, group=group, group_src=self.vector["group_src"])
        return tensor

    # --- Objects, as the bytes of CBOR in hexadecimal digits ---

    def decoded(self, texts):
        return [_cbor.decode(bytes.fromhex(text)) for text in texts]

    def compare_objects(self, objects, texts):
        assert objects == self.decoded(texts), (objects, texts)
        assert [_cbor.encode(each).hex() for each in objects] == texts

    def send_object_list(self):
        root, peer = self.vector["root"], self.vector["dst"]
        if self.rank == root:
            dist.send_object_list(self.decoded(self.values), group=self.group, group_dst=peer)
            return
        objects = [None] * 3
        assert dist.recv_object_list(objects, group=self.group, group_src=root) == root
        self.compare_objects(objects, self.vector["out"][self.rank])

    recv_object_list = send_object_list

    def broadcast_object_list(self):
        root = self.vector["root"]
        objects = self.decoded(self.values) if self.rank == root else [None] * 3
        dist.broadcast_object_list(objects, group=self.group, group_src=root)
        self.compare_objects(objects, self.vector["out"][self.rank])

    def all_gather_object(self):
        objects = [None] * self.size
        dist.all_gather_object(objects, self.decoded([self.values])[0], self.group)
        self.compare_objects(objects, self.vector["out"][self.rank])

    def gather_object(self):
        root = self.vector["root"]
        objects = [None] * self.size if self.rank == root else None
        own = self.decoded([self.values])[0]
        dist.gather_object(own, objects, group=self.group, group_dst=root)
        if self.rank == root:
            self.compare_objects(objects, self.vector["out"][root])

    def scatter_object_list(self):
        objects = [None]
        own = self.decoded(self.values) if self.rank == self.vector["root"] else None
        dist.scatter_object_list(objects, own, group=self.group, group_src=self.vector["root"])
        self.compare_objects(objects, [self.vector["out"][self.rank]])


def compare(vector, result, rank):
    """Compares an array, or a list of arrays; None: there is none, or it was compared already."""
    if result is None:
        return
    want = vector["out"][rank]
    if isinstance(result, list):
        assert len(result) == len(want), (result, want)
        for each, values in zip(result, want):
            np.testing.assert_array_equal(each, array_of(vector, values))
    else:
        np.testing.assert_array_equal(result, array_of(vector, want))


def main(backend):
    if backend == "hierarchical":  # two hosts
        os.environ["RANKRUN_HOST_ID"] = str(int(os.environ["RANK"]) // 4)
    dist.init_process_group(backend)
    world = dist.group.WORLD
    # The groups of a vector's own are made by new_group, in which all ranks of the world take part.
    done = 0
    for vector in json.loads(VECTORS.read_text()):
        if vector["op"] in LEFT_OUT:
            continue
        group = dist.new_group(range(vector["W"])) if vector["W"] < world.size() else world
        done += 1
        makes_groups = {"all_reduce_in_groups", "rank_translation", "broadcast_in_group"}
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            for ranks in vector.get("groups", [[1, 3]]) if vector["op"] in makes_groups else ():
                dist.new_group(ranks)
            continue
        case = Case(vector, group)
        try:
            compare(vector, getattr(case, vector["op"])(), case.rank)
        except Exception as error:
            raise AssertionError(f"{vector['id']} on rank {case.rank}: {error}") from error
    dist.destroy_process_group()
    print(f"{done} vectors passed")


main(sys.argv[1])
