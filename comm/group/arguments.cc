#include "comm/group/arguments.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rankrun::comm {
namespace {

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

std::string Join(const std::vector<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

Result<void> CheckLength(const std::string& name, size_t length, const char* unit, int world_size) {
  if (length == static_cast<size_t>(world_size)) return {};
  return Invalid(name + " has " + std::to_string(length) + " " + unit + ": want " +
                 std::to_string(world_size) + ", one per rank");
}

// Checks that the splits add up to `rows`, without overflow.
Result<void> CheckSum(const std::string& name, std::span<const size_t> splits, size_t rows) {
  auto wrong = [&](const std::string& sum) {
    return Invalid(name + "_splits add up to " + sum + ": want " + std::to_string(rows) +
                   ", the rows of " + name);
  };
  size_t sum = 0;
  for (size_t split : splits) {
    const auto number = static_cast<int64_t>(split);  // Splits takes signed integers, too
    if (number < 0)
      return Invalid(name + "_splits has " + std::to_string(number) + ": want 0 or more");
    if (__builtin_add_overflow(sum, split, &sum)) return wrong("more than there can be");
  }
  if (sum != rows) return wrong(std::to_string(sum));
  return {};
}

std::string InWords(const Device& device) {
  if (device.type == DeviceType::kCpu) return "cpu";
  return "cuda:" + std::to_string(device.index);
}

template <typename BlockType, typename TensorType>
Result<std::vector<BlockType>> Blocks(const std::string& name, std::span<const TensorType> tensors,
                                      const ConstTensor& like, int world_size) {
  if (auto ok = CheckLength(name, tensors.size(), "tensors", world_size); !ok) return ok.error();
  std::vector<BlockType> blocks;
  blocks.reserve(tensors.size());
  for (const TensorType& tensor : tensors) {
    std::string element = name + "[" + std::to_string(blocks.size()) + "]";
    if (auto ok = CheckTensor(element, tensor); !ok) return ok.error();
    if (auto ok = CheckLike(element, tensor, "the call", like); !ok) return ok.error();
    blocks.push_back(BlockOf(tensor));
  }
  return blocks;
}

}  // namespace

Result<int> GroupRankIn(const std::vector<int>& global_ranks, Peer peer) {
  if (!peer.is_global()) {
    int members = static_cast<int>(global_ranks.size());
    if (peer.rank() >= 0 && peer.rank() < members) return peer.rank();
    return Invalid("there is no group rank " + std::to_string(peer.rank()) + ": want 0.." +
                   std::to_string(members - 1));
  }
  auto found = std::find(global_ranks.begin(), global_ranks.end(), peer.rank());
  if (found != global_ranks.end()) return static_cast<int>(found - global_ranks.begin());
  return Invalid("global rank " + std::to_string(peer.rank()) +
                 " is no member of the group, whose ranks are " + Join(global_ranks));
}

Result<void> CheckTensor(std::string_view name, const ConstTensor& tensor) {
  if (SizeOf(tensor.dtype) == 0) {
    return Invalid(std::string(name) + ": no dtype has the number " +
                   std::to_string(static_cast<int>(tensor.dtype)));
  }
  if (tensor.data == nullptr && tensor.count > 0)
    return Invalid(std::string(name) + " has no data");
  if (tensor.device.type != DeviceType::kCpu && tensor.device.type != DeviceType::kCuda) {
    return Invalid(std::string(name) + ": no device type has the number " +
                   std::to_string(static_cast<int>(tensor.device.type)));
  }
  if (tensor.row == 0)
    return Invalid(std::string(name) + " has rows of 0 elements: want at least 1");
  return {};
}

Result<std::vector<Block>> BlocksOf(const std::string& name, std::span<const Tensor> tensors,
                                    const ConstTensor& like, int world_size) {
  return Blocks<Block>(name, tensors, like, world_size);
}

Result<std::vector<ConstBlock>> BlocksOf(const std::string& name,
                                         std::span<const ConstTensor> tensors,
                                         const ConstTensor& like, int world_size) {
  return Blocks<ConstBlock>(name, tensors, like, world_size);
}

Result<std::vector<ConstBlock>> EqualParts(const std::string& name, const ConstTensor& tensor,
                                           int world_size) {
  auto parts = static_cast<size_t>(world_size);
  if (tensor.count % parts != 0) {
    return Invalid(name + " has " + std::to_string(tensor.count) +
                   " elements: want a multiple of " + std::to_string(parts) + ", the world size");
  }
  size_t bytes = tensor.count / parts * SizeOf(tensor.dtype);
  std::vector<ConstBlock> blocks;
  for (size_t i = 0; i < parts; ++i) {
    blocks.push_back({static_cast<const std::byte*>(tensor.data) + i * bytes, bytes});
  }
  return blocks;
}

Result<std::vector<ConstBlock>> PartsByRows(const std::string& name, const ConstTensor& tensor,
                                            std::span<const size_t> splits, int world_size) {
  if (tensor.count % tensor.row != 0) {
    return Invalid(name + " has " + std::to_string(tensor.count) + " elements in rows of " +
                   std::to_string(tensor.row) + ": want whole rows");
  }
  size_t rows = tensor.count / tensor.row;
  auto ranks = static_cast<size_t>(world_size);
  if (splits.empty()) {
    if (rows % ranks == 0) return EqualParts(name, tensor, world_size);
    return Invalid(name + " has " + std::to_string(rows) + " rows: want a multiple of " +
                   std::to_string(ranks) + ", the world size, or splits");
  }
  if (auto ok = CheckLength(name + "_splits", splits.size(), "numbers", world_size); !ok) {
    return ok.error();
  }
  if (auto ok = CheckSum(name, splits, rows); !ok) return ok.error();
  std::vector<ConstBlock> blocks;
  const auto* next = static_cast<const std::byte*>(tensor.data);
  for (size_t split : splits) {
    blocks.push_back({next, split * tensor.row * SizeOf(tensor.dtype)});
    next += blocks.back().bytes;
  }
  return blocks;
}

Result<void> CheckLike(const std::string& name, const ConstTensor& tensor, const std::string& other,
                       const ConstTensor& wanted) {
  if (tensor.dtype != wanted.dtype) {
    return Invalid(name + " is " + rankrun::NameOf(tensor.dtype) + ": want " +
                   rankrun::NameOf(wanted.dtype) + ", as " + other);
  }
  if (tensor.device == wanted.device) return {};
  return Invalid(name + " is on " + InWords(tensor.device) + ": want " + InWords(wanted.device) +
                 ", as " + other);
}

Result<void> CheckCount(const std::string& name, size_t count, const std::string& wanted_by,
                        size_t wanted) {
  if (count == wanted) return {};
  return Invalid(name + " has " + std::to_string(count) + " elements: want " +
                 std::to_string(wanted) + ", " + wanted_by);
}

Result<void> CheckApart(const ConstTensor& output, const ConstTensor& input) {
  ConstBlock a = BlockOf(output);
  ConstBlock b = BlockOf(input);
  if (a.bytes == 0 || b.bytes == 0) return {};
  // As numbers, because a pointer that is no pointer has no end either.
  auto a_begin = reinterpret_cast<uintptr_t>(a.data);
  auto b_begin = reinterpret_cast<uintptr_t>(b.data);
  if (a_begin - b_begin >= b.bytes && b_begin - a_begin >= a.bytes) return {};
  return Invalid("output and input overlap: want memory that is apart");
}

bool IsOnDevice(const ConstTensor& tensor) { return tensor.device.type != DeviceType::kCpu; }

Block BlockOf(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data), tensor.count * SizeOf(tensor.dtype)};
}

ConstBlock BlockOf(const ConstTensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data), tensor.count * SizeOf(tensor.dtype)};
}

std::vector<Block> Writable(const std::vector<ConstBlock>& blocks) {
  std::vector<Block> writable;
  for (const ConstBlock& block : blocks) {
    writable.push_back({const_cast<std::byte*>(block.data), block.bytes});
  }
  return writable;
}

}  // namespace rankrun::comm
