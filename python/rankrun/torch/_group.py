"""The process group of the backend "rankrun", in its portable form: a ProcessGroup in Python."""

import sys

import torch
from torch import distributed as dist
from torch._C import _distributed_c10d as c10d

from rankrun import _native
from rankrun._time import milliseconds
from rankrun.torch import _stores
from rankrun.torch._errors import NativeError, call
from rankrun.torch._operations import Operations

_CPU = torch.device("cpu")
_BY_GROUP = -1  # the time-out of the group
_default = None  # the ProcessGroup of the first context that still lives


def of_maker(name, otherwise):
    """Returns a variable of the function of torch.distributed that is making a group.

    The interface of backends does not tell them.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_new_process_group_helper":
            return frame.f_locals.get(name, otherwise)
        frame = frame.f_back
    return otherwise


def device_map():
    """Returns the backends by device of the group that is being made."""
    config = of_maker("backend_config", None)
    return config.get_device_backend_map() if config is not None else {}


def create(options, group_options):
    """Makes a group for torch.distributed, which gives its _DistributedBackendOptions."""
    devices = device_map()
    if len(devices) > 1:
        names = ",".join(f"{device}:{name}" for device, name in devices.items())
        raise ValueError(
            f'init_process_group: "{names}": the portable form of the backend rankrun replaces the '
            'whole group: want "rankrun" for it, and a group of its own for other devices'
        )
    return ProcessGroup(options)


class ProcessGroup(Operations, dist.ProcessGroup):
    """A group of ranks. Methods are those of torch.distributed.ProcessGroup."""

    event_prefix = "rankrun"  # of events in PyTorch's profiler

    def __init__(self, options):
        dist.ProcessGroup.__init__(self, options.group_rank, options.group_size)
        self._store = options.store
        self._context = None
        self._default_ms = _BY_GROUP
        self._sequence = 0
        self._batch = None
        self._is_shut_down = False
        self._group_name = self._group_description = ""
        self.options = c10d.Backend.Options(self.getBackendName(), options.timeout)
        self._open(options, milliseconds(options.timeout))
        self._global_ranks = call(_native.group_ranks, self._native)
        # Only the type of the device: no Backend object exists.
        self._register_backend(_CPU, dist.ProcessGroup.BackendType.CUSTOM, None)

    def _open(self, options, timeout_ms):
        global _default
        ranks = list(options.global_ranks_in_group)
        if ranks and _default is not None and not _default._is_shut_down:
            self._native = call(
                _native.new_group, _default._context, ranks, False, True, timeout_ms, None,
                options.group_id,
            )
            return
        name = f"torch_{options.group_id}"
        store = _stores.client_of(options.store, options.group_rank, name, timeout_ms)
        self._context = call(
            _native.context_init, name, None, None, options.group_rank, options.group_size,
            timeout_ms, store,
        )
        self._native = call(_native.context_world, self._context)
        if not dist.is_initialized():  # it becomes the default group
            _default = self

    def getBackendName(self):
        return "rankrun"

    name = _get_backend_name = getBackendName

    # PyTorch's own keep the name and the description in a Backend, of which there is none.
    def setGroupName(self, name):
        self._group_name = name

    def getGroupName(self):
        return self._group_name

    def setGroupDesc(self, description):
        self._group_description = description

    def getGroupDesc(self):
        return self._group_description

    def get_group_store(self):
        return self._store

    def _get_backend(self, device):
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"the backend rankrun has no collectives of {device} memory")
        return self

    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False

    def set_timeout(self, timeout):
        self.options._timeout = timeout
        self._default_ms = milliseconds(timeout)

    _set_default_timeout = set_timeout

    def get_error(self):
        """Returns the state of the group as an ErrorType of c10d."""
        try:
            _native.group_state(self._native)
        except NativeError as error:
            text = str(error)
            return c10d.ErrorType.TIMEOUT if "time-out" in text else c10d.ErrorType.COMM_ERROR
        return c10d.ErrorType.SUCCESS

    def _get_sequence_number_for_group(self):
        return self._sequence

    def _set_sequence_number_for_group(self):
        pass  # all ranks begin with 0

    def _wait_for_pending_works(self):
        pass

    def abort(self):
        """Ends the calls under way, on all ranks. The group is of no use afterwards."""
        call(_native.abort, self._native, None)

    def shutdown(self):
        global _default
        if self._is_shut_down:
            return
        self._is_shut_down = True
        if self._context is None:
            if _default is not None and not _default._is_shut_down:
                call(_native.destroy, self._native)
            return
        if _default is self:
            _default = None
        _native.context_release(self._context)
