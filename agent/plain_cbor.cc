#include "agent/plain_cbor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rankrun::agent {
namespace {

// RFC 8949, section 3.
enum Major { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };
constexpr unsigned kFalse = 20;
constexpr unsigned kNull = 22;
constexpr unsigned kOneByteFollows = 24;
constexpr unsigned kEightBytesFollow = 27;
constexpr size_t kMostLevels = 16;

struct Head {
  Major major;
  unsigned info;
  uint64_t number;  // a value, a length or a count
};

// Takes it from the front of `bytes`.
std::optional<Head> TakeHead(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  Head head{static_cast<Major>(first >> 5), first & 31U, first & 31U};
  if (head.info < kOneByteFollows) return head;
  if (head.info > kEightBytesFollow) return std::nullopt;  // none, or an end that comes later
  const size_t follow = size_t{1} << (head.info - kOneByteFollows);
  if (bytes.size() < follow) return std::nullopt;
  head.number = 0;
  for (char byte : bytes.substr(0, follow)) {
    head.number = head.number << 8 | static_cast<unsigned char>(byte);
  }
  bytes.remove_prefix(follow);
  return head;
}

bool IsPlainSimple(const Head& head) {
  const bool is_float = head.info > kOneByteFollows;
  return is_float || (head.info >= kFalse && head.info <= kNull);
}

// The values that are still to come, level by level.
class Levels {
 public:
  // Whether there is room for one more.
  bool Enter(uint64_t values) {
    if (depth_ == kMostLevels) return false;
    left_[depth_++] = values;
    return true;
  }
  void EndValue() {
    while (depth_ > 0 && --left_[depth_ - 1] == 0) --depth_;
  }
  bool over() const { return depth_ == 0; }

 private:
  std::array<uint64_t, kMostLevels> left_{};
  size_t depth_ = 0;
};

}  // namespace

bool IsPlainCbor(std::string_view bytes) {
  Levels levels;
  do {
    auto head = TakeHead(bytes);
    if (!head || head->major == kTag) return false;
    if (head->major == kSimple && !IsPlainSimple(*head)) return false;
    if (head->major == kBytes || head->major == kText) {
      if (head->number > bytes.size()) return false;
      bytes.remove_prefix(head->number);
    }
    const bool holds_values = head->major == kArray || head->major == kMap;
    if (!holds_values || head->number == 0) {
      levels.EndValue();
      continue;
    }
    if (head->number > bytes.size()) return false;  // each takes a byte at least
    if (!levels.Enter(head->major == kMap ? 2 * head->number : head->number)) return false;
  } while (!levels.over());
  return bytes.empty();
}

}  // namespace rankrun::agent
