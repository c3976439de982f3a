#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <rankrun/peer.h>
#include <rankrun/tensor.h>

#include "base/result.h"
#include "comm/backend.h"

namespace rankrun::comm {

// Pure checks of what a program passes to a collective, and the blocks of
// memory that a backend makes of it. `name` is what the argument is called.
// Errors of all: kInvalid, "outputs has 3 tensors: want 4, one per rank".

// The group rank of `peer` in the group of these members.
Result<int> GroupRankIn(const std::vector<int>& global_ranks, Peer peer);

Result<void> CheckTensor(const std::string& name, const ConstTensor& tensor);

// One per rank, all of `dtype`.
Result<std::vector<Block>> BlocksOf(const std::string& name, std::span<const Tensor> tensors,
                                    DType dtype, int world_size);
Result<std::vector<ConstBlock>> BlocksOf(const std::string& name,
                                         std::span<const ConstTensor> tensors, DType dtype,
                                         int world_size);

// `tensor` in equal parts, one per rank.
Result<std::vector<ConstBlock>> EqualParts(const std::string& name, const ConstTensor& tensor,
                                           int world_size);
// In parts of so many rows each; in equal ones if `splits` is empty.
Result<std::vector<ConstBlock>> PartsByRows(const std::string& name, const ConstTensor& tensor,
                                            std::span<const std::size_t> splits, int world_size);

Result<void> CheckDType(const std::string& name, DType dtype, const std::string& other,
                        DType wanted);
Result<void> CheckCount(const std::string& name, std::size_t count, const std::string& wanted_by,
                        std::size_t wanted);
Result<void> CheckApart(const ConstTensor& output, const ConstTensor& input);

Block BlockOf(const Tensor& tensor);
ConstBlock BlockOf(const ConstTensor& tensor);
// Of memory that came as a Tensor.
std::vector<Block> Writable(const std::vector<ConstBlock>& blocks);

}  // namespace rankrun::comm
