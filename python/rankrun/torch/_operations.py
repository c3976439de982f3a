"""The operations of a process group: arguments of PyTorch's as those of librankrun."""

import datetime

import torch
from torch import distributed as dist
from torch._C import _distributed_c10d as c10d

from rankrun import _native
from rankrun._time import milliseconds
from rankrun.torch import _profile, _sparse
from rankrun.torch._errors import NativeError, call, translated
from rankrun.torch._tensors import Tensors, shapes_of, use_fast_way
from rankrun.torch._work import DONE, Done, Receive, Work

_Op = dist.ReduceOp
_SUM = _Op.SUM
_KINDS = {
    _Op.SUM: 0,
    _Op.AVG: 1,
    _Op.PRODUCT: 2,
    _Op.MIN: 3,
    _Op.MAX: 4,
    _Op.BAND: 5,
    _Op.BOR: 6,
    _Op.BXOR: 7,
    _Op.PREMUL_SUM: 8,
}
_PREMUL_SUM = 8
_NO_TIME = datetime.timedelta(0)
_IS_FAST = use_fast_way()


def _kind_and_factor(op):
    kind = _KINDS[op.op]
    if kind != _PREMUL_SUM:
        return kind, 0.0
    factor = op.__getstate__()[1]
    if isinstance(factor, torch.Tensor):
        factor = factor.item()
    return kind, float(factor)


def _one(tensors):
    """Returns the tensor of a list; PyTorch has dropped several per rank."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors: want one per rank")
    return tensors[0]


def _one_list(lists):
    """Returns the list in a list of lists; an empty one on ranks that give none."""
    return _one_or_none(lists) or []


def _one_or_none(lists):
    if len(lists) > 1 and not isinstance(lists[0], torch.Tensor):
        raise ValueError(f"{len(lists)} lists of tensors: want one per rank")
    if lists and isinstance(lists[0], torch.Tensor):
        return lists
    return lists[0] if lists else None


def _options(kind, given, timeout, **fields):
    """Returns the options of a call, also for the forms without a struct of options."""
    if isinstance(given, kind):
        return given
    options = kind()
    if timeout is not None:
        options.timeout = timeout
    for name, value in fields.items():
        if value is not None:
            setattr(options, name, value)
    return options


class Operations:
    """The operations of a ProcessGroup, which derives from this class and has _native,
    _global_ranks (those of librankrun, by group rank), _default_ms and _sequence."""

    def _limit(self, options):
        timeout = options.timeout
        return self._default_ms if timeout < _NO_TIME else milliseconds(timeout)

    def _member(self, rank):
        """Returns the rank of librankrun of a rank of this group."""
        if not 0 <= rank < len(self._global_ranks):
            last = len(self._global_ranks) - 1
            raise ValueError(f"rank {rank} is not in the group: want a rank of 0 to {last}")
        return self._global_ranks[rank]

    def _root(self, options):
        return self._member(options.rootRank)

    def _run(self, name, function, arguments, tensors, options, results=(), shapes=()):
        """Carries out a collective, or starts it if it is asynchronous."""
        self._sequence += 1
        is_async = getattr(options, "asyncOp", True)  # older versions do not tell
        if _profile.is_on():
            return self._profiled(name, function, arguments, tensors, options, results, shapes)
        in_batch = self._batch is not None
        try:
            handle = function(
                self._native, *arguments, self._limit(options), is_async or in_batch
            )
        except NativeError as error:
            raise translated(error) from None
        if not is_async and not in_batch:
            tensors.finish()
            return DONE
        return self._started([handle], tensors, results)

    def _started(self, handles, tensors, results):
        return self._noted(Work(handles, tensors, results))

    def _noted(self, work):
        if self._batch is not None:
            self._batch.append(work)
        return work

    # The event ends in another thread, as the profiler's users know it of Gloo.
    def _profiled(self, name, function, arguments, tensors, options, results, shapes):
        event = _profile.Event(f"{self.event_prefix}:{name}", shapes_of(*shapes))
        try:
            handle = function(self._native, *arguments, self._limit(options), True)
        except NativeError as error:
            event.end()
            raise translated(error) from None
        work = self._started([handle], tensors, results)
        work.end_event_in_other_thread(event)
        return work

    # A list of calls; their Work ends with the last.
    def _run_each(self, name, function, calls, tensors, options, results, shapes):
        self._sequence += 1
        event = None
        if _profile.is_on():
            event = _profile.Event(f"{self.event_prefix}:{name}", shapes_of(*shapes))
        limit = self._limit(options)
        handles = [call(function, self._native, *each, limit, True) for each in calls]
        if not handles:
            return DONE
        work = self._started(handles, tensors, results)
        if event is not None:
            work.end_event_in_other_thread(event)
        return work

    def allreduce(self, tensors, opts=None, timeout=None):
        if _IS_FAST and type(opts) is c10d.AllreduceOptions and not opts.asyncOp:
            # This comparison takes a third of the time of the look-up.
            kind = 0 if opts.reduceOp == _SUM else _KINDS[opts.reduceOp.op]
            if kind != _PREMUL_SUM and len(tensors) == 1 and not _profile.is_on():
                try:
                    if _native.all_reduce_now(self._native, tensors[0], kind, self._limit(opts)):
                        self._sequence += 1
                        return DONE
                except NativeError as error:
                    raise translated(error) from None
        opts = _options(c10d.AllreduceOptions, opts, timeout, reduceOp=opts)
        tensor = _one(tensors)
        if tensor.is_sparse:
            if _KINDS[opts.reduceOp.op] != 0:
                raise RuntimeError("all_reduce of a sparse tensor: want the sum")
            _sparse.all_reduce(self, tensor, self._limit(opts))
            return Done([tensor])
        data = Tensors(reduces=True)
        arguments = (data.written(tensor), *_kind_and_factor(opts.reduceOp))
        return self._run(
            "all_reduce", _native.all_reduce, arguments, data, opts, [tensor], [tensor]
        )

    def allreduce_coalesced(self, tensors, opts=None):
        opts = _options(c10d.AllreduceCoalescedOptions, opts, None)
        data = Tensors(reduces=True)
        kind = _kind_and_factor(opts.reduceOp)
        calls = [(data.written(each), *kind) for each in tensors]
        return self._run_each(
            "all_reduce", _native.all_reduce, calls, data, opts, tensors, tensors
        )

    def broadcast(self, tensors, opts=None, timeout=None):
        opts = _options(c10d.BroadcastOptions, opts, timeout, rootRank=opts)
        tensor = _one(tensors)
        data = Tensors()
        is_root = opts.rootRank == self.rank()
        described = data.read(tensor) if is_root else data.written(tensor)
        return self._run(
            "broadcast", _native.broadcast, (described, self._root(opts)), data, opts,
            [tensor], [tensor],
        )

    def reduce(self, tensors, opts=None, op=None, timeout=None):
        opts = _options(c10d.ReduceOptions, opts, timeout, rootRank=opts, reduceOp=op)
        tensor = _one(tensors)
        data = Tensors(reduces=True)
        arguments = (data.written(tensor), self._root(opts), *_kind_and_factor(opts.reduceOp))
        return self._run(
            "reduce", _native.reduce, arguments, data, opts, [tensor], [tensor]
        )

    def allgather(self, output_tensors, input_tensors, opts=None, timeout=None):
        opts = _options(c10d.AllgatherOptions, opts, timeout)
        outputs, tensor = _one_list(output_tensors), _one(input_tensors)
        data = Tensors()
        arguments = ([data.written(each) for each in outputs], data.read(tensor))
        return self._run(
            "all_gather", _native.all_gather, arguments, data, opts, outputs, [tensor]
        )

    def all_gather_single(self, output, input, opts=None):
        opts = _options(c10d.AllgatherOptions, opts, None)
        data = Tensors()
        arguments = (data.written(output), data.read(input))
        return self._run(
            "_all_gather_base", _native.all_gather_into, arguments, data, opts, [output], [input]
        )

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        opts = _options(c10d.AllgatherOptions, opts, None)
        data = Tensors()
        calls = [(data.written(out), data.read(each)) for out, each in zip(outputs, inputs)]
        return self._run_each(
            "all_gather", _native.all_gather_into, calls, data, opts, outputs, inputs
        )

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    # output_lists: by rank, those of all inputs.
    def allgather_coalesced(self, output_lists, input_list, opts=None):
        opts = _options(c10d.AllgatherOptions, opts, None)
        data = Tensors()
        calls = [
            ([data.written(each) for each in outputs], data.read(tensor))
            for outputs, tensor in zip(zip(*output_lists), input_list)
        ]
        results = [each for outputs in output_lists for each in outputs]
        return self._run_each(
            "all_gather", _native.all_gather, calls, data, opts, results, input_list
        )

    def gather(self, output_tensors, input_tensors, opts=None, timeout=None):
        opts = _options(c10d.GatherOptions, opts, timeout, rootRank=opts)
        outputs, tensor = _one_list(output_tensors), _one(input_tensors)
        data = Tensors()
        arguments = (
            [data.written(each) for each in outputs], data.read(tensor), self._root(opts),
        )
        return self._run("gather", _native.gather, arguments, data, opts, outputs, [tensor])

    def scatter(self, output_tensors, input_tensors, opts=None, timeout=None):
        opts = _options(c10d.ScatterOptions, opts, timeout, rootRank=opts)
        output, tensors = _one(output_tensors), _one_list(input_tensors)
        data = Tensors()
        arguments = (
            data.written(output), [data.read(each) for each in tensors], self._root(opts),
        )
        return self._run("scatter", _native.scatter, arguments, data, opts, [output], tensors)

    def reduce_scatter(self, output_tensors, input_tensors, opts=None, timeout=None):
        opts = _options(c10d.ReduceScatterOptions, opts, timeout, reduceOp=opts)
        output, tensors = _one(output_tensors), _one_list(input_tensors)
        data = Tensors(reduces=True)
        arguments = (
            data.written(output), [data.read(each) for each in tensors],
            *_kind_and_factor(opts.reduceOp),
        )
        return self._run(
            "reduce_scatter", _native.reduce_scatter, arguments, data, opts, [output], tensors
        )

    def reduce_scatter_single(self, output, input, opts=None):
        opts = _options(c10d.ReduceScatterOptions, opts, None)
        data = Tensors(reduces=True)
        arguments = (data.written(output), data.read(input), *_kind_and_factor(opts.reduceOp))
        return self._run(
            "_reduce_scatter_base", _native.reduce_scatter_from, arguments, data, opts,
            [output], [input],
        )

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        opts = _options(c10d.ReduceScatterOptions, opts, None)
        data = Tensors(reduces=True)
        kind = _kind_and_factor(opts.reduceOp)
        calls = [
            (data.written(out), data.read(each), *kind) for out, each in zip(outputs, inputs)
        ]
        return self._run_each(
            "reduce_scatter", _native.reduce_scatter_from, calls, data, opts, outputs, inputs
        )

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None,
                      timeout=None):
        opts = _options(c10d.AllToAllOptions, opts, timeout)
        data = Tensors()
        arguments = (
            data.written(output), data.read(input), output_split_sizes, input_split_sizes,
        )
        return self._run(
            "all_to_all", _native.all_to_all_single, arguments, data, opts, [output], [input]
        )

    all_to_all_single = alltoall_base

    def alltoall(self, output_tensors, input_tensors, opts=None, timeout=None):
        opts = _options(c10d.AllToAllOptions, opts, timeout)
        data = Tensors()
        arguments = (
            [data.written(each) for each in output_tensors],
            [data.read(each) for each in input_tensors],
        )
        return self._run(
            "all_to_all", _native.all_to_all, arguments, data, opts, output_tensors, input_tensors
        )

    def barrier(self, opts=None, timeout=None):
        opts = _options(c10d.BarrierOptions, opts, timeout)
        return self._run("barrier", _native.barrier, (), Tensors(), opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        limit = self._default_ms if timeout is None else milliseconds(timeout)
        call(_native.monitored_barrier, self._native, limit, wait_all_ranks)

    def gather_all(self, outputs, tensor, timeout_ms):
        """Fills `outputs`, which may differ in size, with the tensors of the ranks, by rank."""
        data = Tensors()
        arguments = [data.written(each) for each in outputs], data.read(tensor)
        call(_native.all_gather, self._native, *arguments, timeout_ms, False)
        data.finish()

    def _message(self, name, function, described, data, tensor, peer, tag):
        event = None
        if _profile.is_on():
            event = _profile.Event(f"{self.event_prefix}:{name}", [tensor])
        handle = call(function, self._native, described, peer, tag)
        work = self._noted(Receive(handle, data, [tensor], self._global_ranks))
        if event is not None:
            work.end_event_in_other_thread(event)
        return work

    def send(self, tensors, dst, tag):
        tensor, data = _one(tensors), Tensors()
        peer = self._member(dst)
        return self._message("send", _native.isend, data.read(tensor), data, tensor, peer, tag)

    def recv(self, tensors, src, tag):
        tensor, data = _one(tensors), Tensors()
        peer = self._member(src)
        return self._message("recv", _native.irecv, data.written(tensor), data, tensor, peer, tag)

    def recv_anysource(self, tensors, tag):
        tensor, data = _one(tensors), Tensors()
        described = data.written(tensor)
        return self._message("recvAnySource", _native.irecv, described, data, tensor, -1, tag)

    # The calls between these two are one Work.
    def _start_coalescing(self, device):
        self._batch = []

    def _end_coalescing(self, device):
        works, self._batch = self._batch or [], None
        return Work.of_all(works) if works else DONE
