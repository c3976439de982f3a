#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm {

// Blocks that outlive the call's arguments. A single one needs no allocation.
template <typename BlockType>
class BlockList {
 public:
  BlockList() = default;
  BlockList(const BlockType& one) : one_(one) {}
  BlockList(std::vector<BlockType> many) : many_(std::move(many)) {}

  operator std::span<const BlockType>() const {
    return one_ ? std::span<const BlockType>(&*one_, 1) : many_;
  }
  std::vector<BlockType> ToVector() && {
    return one_ ? std::vector<BlockType>{*one_} : std::move(many_);
  }

 private:
  std::optional<BlockType> one_;
  std::vector<BlockType> many_;
};

// Data of a collective until it is carried out.
struct CollectiveData {
  BlockList<Block> outputs = {};
  BlockList<ConstBlock> inputs = {};
  Reduction reduction = {};
  double factor = 1;  // of ReduceOp::kPremulSum, which multiplies the inputs
};

// Carries out a collective of all ranks. Errors: as Backend.
Result<void> RunCollective(Backend& backend, const Call& call, const CollectiveData& data);

}  // namespace rankrun::comm
