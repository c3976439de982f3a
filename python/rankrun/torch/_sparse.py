"""Sums of sparse tensors."""

import torch


def all_reduce(group, tensor, timeout_ms):
    """Sums a sparse COO tensor over the ranks of a group, which may have different elements."""
    mine = tensor.coalesce()
    counts = torch.empty(group.size(), dtype=torch.int64)
    own = torch.tensor([mine._nnz()], dtype=torch.int64)
    group.gather_all(list(counts.split(1)), own, timeout_ms)
    total = None
    indices = [torch.empty((mine.sparse_dim(), int(n)), dtype=torch.int64) for n in counts]
    values = [torch.empty((int(n), *mine.values().shape[1:]), dtype=mine.dtype) for n in counts]
    group.gather_all(indices, mine.indices(), timeout_ms)
    group.gather_all(values, mine.values(), timeout_ms)
    for each_indices, each_values in zip(indices, values):
        part = torch.sparse_coo_tensor(each_indices, each_values, tensor.shape)
        total = part if total is None else total + part
    tensor.copy_(total.coalesce())
