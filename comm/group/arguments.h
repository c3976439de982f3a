#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rankrun/peer.h>
#include <rankrun/tensor.h>

#include "base/result.h"
#include "comm/core/collective.h"

namespace rankrun::comm {

// Pure checks of the arguments of a collective, and their conversion to the
// blocks of a backend. `name` is the name of the argument in error texts.
// Errors of all: kInvalid, "outputs has 3 tensors: want 4, one per rank".

// Returns the group rank of `peer` in the group with these members.
Result<int> GroupRankIn(const std::vector<int>& global_ranks, Peer peer);

Result<void> CheckTensor(std::string_view name, const ConstTensor& tensor);

// Returns one block per tensor; there must be one tensor per rank, of the dtype and on
// the device of `like`, another tensor of the call.
Result<std::vector<Block>> BlocksOf(const std::string& name, std::span<const Tensor> tensors,
                                    const ConstTensor& like, int world_size);
Result<std::vector<ConstBlock>> BlocksOf(const std::string& name,
                                         std::span<const ConstTensor> tensors,
                                         const ConstTensor& like, int world_size);

// Returns `tensor` in equal parts, one per rank.
Result<std::vector<ConstBlock>> EqualParts(const std::string& name, const ConstTensor& tensor,
                                           int world_size);
// Returns `tensor` in parts of `splits` rows, or in equal parts if `splits` is
// empty.
Result<std::vector<ConstBlock>> PartsByRows(const std::string& name, const ConstTensor& tensor,
                                            std::span<const size_t> splits, int world_size);

// Checks that `tensor` has the dtype and the device of another tensor.
Result<void> CheckLike(const std::string& name, const ConstTensor& tensor, const std::string& other,
                       const ConstTensor& wanted);
Result<void> CheckCount(const std::string& name, size_t count, const std::string& wanted_by,
                        size_t wanted);
Result<void> CheckApart(const ConstTensor& output, const ConstTensor& input);

// Returns whether the tensor is in memory of a GPU.
bool IsOnDevice(const ConstTensor& tensor);

Block BlockOf(const Tensor& tensor);
ConstBlock BlockOf(const ConstTensor& tensor);
// Returns writable blocks; their memory must come from a Tensor, not a
// ConstTensor.
std::vector<Block> Writable(const std::vector<ConstBlock>& blocks);

}  // namespace rankrun::comm
