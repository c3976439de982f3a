#include "comm/core/operation.h"

#include <algorithm>

#include "base/status/operation_names.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

bool IsMessage(Kind kind) { return kind == Kind::kSend || kind == Kind::kRecv; }

std::string RootOf(const Operation& operation) {
  if (operation.root == Operation::kNoRoot) return "";
  bool has_name = operation.global_root != Operation::kNoRoot;
  const std::string rank =
      "rank " + std::to_string(has_name ? operation.global_root : operation.root);
  switch (operation.kind) {
    case Kind::kBroadcast:
    case Kind::kScatter:
    case Kind::kRecv:
      return " from " + rank;
    default:
      return " to " + rank;
  }
}

// Objects travel as two messages: a head of numbers, then their bytes.
std::string DataOf(const Operation& operation) {
  std::string count = std::to_string(operation.count);
  if (!operation.is_of_objects()) return count + " x " + rankrun::NameOf(operation.dtype);
  return operation.dtype == DType::kUInt8 ? count + " bytes of objects" : "objects";
}

constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // odd, of many bits

// Adds `value` to a hash.
// Source: splitmix64.
uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) + kGoldenRatio;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

}  // namespace

bool Reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
}

bool MayBeUneven(Kind kind) {
  return kind == Kind::kAllGather || kind == Kind::kGather || kind == Kind::kScatter ||
         kind == Kind::kAllToAll;
}

const char* NameOf(Kind kind) { return NameOfCollective(static_cast<uint8_t>(kind)); }

std::string NameOf(const Operation& operation) {
  return std::string(NameOf(operation.kind)) + (operation.is_of_objects() ? "Objects" : "");
}

std::string TagInWords(uint64_t tag) {
  if (tag >= kDeviceTags) return "a message in GPU memory";
  return (tag < kObjectTags ? "tag " : "objects with tag ") + std::to_string(tag % kObjectTags);
}

std::string Describe(const Operation& operation) {
  std::string text = PrefixOf(operation.part_of) + NameOf(operation);
  if (operation.number > 0) text += " #" + std::to_string(operation.number);
  const char* place = operation.device == DeviceType::kCuda ? " on cuda" : "";
  const char* carrier = operation.by_backend ? " by the backend itself" : "";
  if (operation.kind == Kind::kBarrier) return text + place + carrier;
  text += " (" + DataOf(operation) + place;
  if (Reduces(operation.kind)) text += std::string(", ") + NameOfReduceOp(operation.op);
  if (operation.layout != 0) text += ", uneven as " + std::to_string(operation.layout % 1'000'000);
  text += RootOf(operation);
  if (IsMessage(operation.kind)) text += ", tag " + std::to_string(operation.tag % kObjectTags);
  return text + ")" + carrier;
}

std::string DescribeMismatch(uint64_t tag, const MessageSide& sender, const MessageSide& receiver) {
  auto data = [](const MessageSide& side) {
    size_t element = std::max<size_t>(SizeOf(side.dtype), 1);  // a peer may name an unknown type
    return std::to_string(side.bytes / element) + " x " + NameOf(side.dtype);
  };
  return sender.name + " sends " + data(sender) + " with tag " + std::to_string(tag % kObjectTags) +
         " to " + receiver.name + ", which expects " + data(receiver);
}

uint64_t Fingerprint(const Operation& operation) {
  static_assert(static_cast<uint64_t>(DeviceType::kCuda) <= 0x3);  // two bits below part_of
  uint64_t shape =
      static_cast<uint64_t>(operation.kind) | static_cast<uint64_t>(operation.dtype) << 8 |
      static_cast<uint64_t>(operation.op) << 16 | static_cast<uint64_t>(operation.device) << 24 |
      static_cast<uint64_t>(operation.part_of) << 26 |
      static_cast<uint64_t>(operation.by_backend) << 31 |
      static_cast<uint64_t>(static_cast<uint32_t>(operation.root)) << 32;
  uint64_t count = MayBeUneven(operation.kind) ? 0 : operation.count;
  // A layout is a hash itself, so it needs no round of its own.
  return Mix(Mix(operation.number, shape), count + operation.layout * kGoldenRatio) | 1;
}

}  // namespace rankrun::comm
