#include "base/cbor_depth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace rankrun {
namespace {

// RFC 8949, section 3.
enum Major { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };
constexpr unsigned kOneByteFollows = 24;
constexpr unsigned kEightBytesFollow = 27;
constexpr unsigned kUnknownLength = 31;
constexpr char kEndOfUnknownLength = '\xFF';

enum class Walk { kDone, kError, kTooDeep };

// The start of a value.
struct Head {
  Major major;
  bool has_length;
  uint64_t number;  // a value, a length or a count
};

// Removes a head from the front of `bytes`. Returns nothing for an error.
std::optional<Head> TakeHead(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  auto first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  unsigned info = first & 31U;
  Head head{static_cast<Major>(first >> 5), info != kUnknownLength, info};
  if (info < kOneByteFollows || info == kUnknownLength) return head;
  if (info > kEightBytesFollow) return std::nullopt;
  size_t follow = size_t{1} << (info - kOneByteFollows);
  if (bytes.size() < follow) return std::nullopt;
  head.number = 0;
  for (char byte : bytes.substr(0, follow)) {
    head.number = head.number << 8 | static_cast<unsigned char>(byte);
  }
  bytes.remove_prefix(follow);
  bool is_list = head.major == kArray || head.major == kMap;
  if (is_list && head.number == std::numeric_limits<uint64_t>::max()) {
    head.has_length = false;  // as in nlohmann's parser
  }
  return head;
}

// Returns how many values `head` contains; each takes at least one byte.
uint64_t CountWithin(const Head& head, size_t bytes) {
  if (head.major == kTag) return 1;
  uint64_t count = std::min<uint64_t>(head.number, bytes);
  return head.major == kMap ? 2 * count : count;
}

// Removes one value from the front of `bytes`.
Walk WalkValue(std::string_view& bytes, int max_levels) {
  auto head = TakeHead(bytes);
  if (!head) return Walk::kError;
  bool is_string = head->major == kBytes || head->major == kText;
  bool is_flat = head->major == kUnsigned || head->major == kNegative || head->major == kSimple;
  if (is_flat) return head->has_length ? Walk::kDone : Walk::kError;
  if (is_string && head->has_length) {
    if (head->number > bytes.size()) return Walk::kError;
    bytes.remove_prefix(head->number);
    return Walk::kDone;
  }
  if (max_levels == 0) return Walk::kTooDeep;
  const uint64_t count = CountWithin(*head, bytes.size());
  for (uint64_t i = 0; !head->has_length || i < count; ++i) {
    if (!head->has_length && bytes.starts_with(kEndOfUnknownLength)) {
      bytes.remove_prefix(1);
      return Walk::kDone;
    }
    Walk walk = WalkValue(bytes, max_levels - 1);
    if (walk != Walk::kDone) return walk;
  }
  return Walk::kDone;
}

}  // namespace

bool CborNestsWithin(std::string_view bytes, int max_levels) {
  return WalkValue(bytes, max_levels) != Walk::kTooDeep;
}

}  // namespace rankrun
