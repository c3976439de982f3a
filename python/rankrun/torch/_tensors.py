"""Tensors of PyTorch as those of librankrun."""

import torch

from rankrun import _native

DTYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.bfloat16: 3,
    torch.int8: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.uint8: 8,
    torch.uint16: 9,
    torch.uint32: 10,
    torch.uint64: 11,
    torch.bool: 12,
    torch.complex64: 13,
    torch.complex128: 14,
    torch.float8_e4m3fn: 15,
    torch.float8_e5m2: 16,
}
_UINT8 = 8


def use_fast_way():
    """Returns whether _native can read tensors of this PyTorch itself (2.10 and newer)."""
    table = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    return table is not None and _native.use_exchange(table)


def _check(tensor):
    if tensor.device.type != "cpu":
        raise RuntimeError(
            f"the backend rankrun has no collectives of {tensor.device.type} memory: want a "
            'tensor of the CPU, or a group of another backend for it, such as "nccl"'
        )
    if tensor.layout is not torch.strided:
        raise RuntimeError(f"the backend rankrun takes dense tensors only, not {tensor.layout}")


def _check_written(tensor):
    if any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape)):
        raise RuntimeError(
            "the elements of a tensor that a collective writes share memory: want a tensor with an "
            "element for each, such as tensor.contiguous()"
        )


def _is_plain(tensor):
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _describe(tensor, reduces):
    dtype = DTYPES.get(tensor.dtype)
    count = tensor.numel()
    size = 1
    if dtype is None:
        if reduces:
            raise RuntimeError(f"the backend rankrun cannot reduce {tensor.dtype}")
        dtype, size = _UINT8, tensor.element_size()
    shape = tensor.shape
    row = count // shape[0] if len(shape) > 1 and shape[0] > 0 else 1
    return (tensor.data_ptr(), count * size, row * size, dtype, tensor)


class Tensors:
    """The tensors of one call. Those that are not dense are copied.

    reduces: whether the call does arithmetic. Types without arithmetic are moved as bytes.
    """

    __slots__ = ("_copies", "_reduces")

    def __init__(self, reduces=False):
        self._copies = None
        self._reduces = reduces

    def read(self, tensor):
        """Returns the description of a tensor that the call reads."""
        _check(tensor)
        if not _is_plain(tensor):
            tensor = tensor.resolve_conj().resolve_neg().contiguous()
        return _describe(tensor, self._reduces)

    def written(self, tensor):
        """Returns the description of a tensor that the call writes, and may read."""
        _check(tensor)
        if _is_plain(tensor):
            return _describe(tensor, self._reduces)
        _check_written(tensor)
        dense = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        if self._copies is None:
            self._copies = []
        self._copies.append((tensor, dense))
        return _describe(dense, self._reduces)

    def finish(self):
        """Copies results back, after the call."""
        copies, self._copies = self._copies, None
        if copies:
            for tensor, dense in copies:
                with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                    tensor.copy_(dense)


def shapes_of(*tensors):
    """Returns the tensors of nested lists as one list, for the profiler."""
    flat = []
    for each in tensors:
        if isinstance(each, torch.Tensor):
            flat.append(each)
        else:
            flat.extend(shapes_of(*each))
    return flat
