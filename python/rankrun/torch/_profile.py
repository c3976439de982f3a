"""Events of the profiler of PyTorch: "rankrun:all_reduce", with the shapes of the tensors."""

import torch

is_on = torch.autograd._profiler_enabled


class Event:
    """An event from now to end(), which another thread may call: then PyTorch shows it as one that
    goes on beside the program."""

    def __init__(self, name, tensors):
        self._record = torch._C._profiler._RecordFunctionFast(name, tensors)
        self._record.__enter__()

    def end(self):
        self._record.__exit__(None, None, None)
