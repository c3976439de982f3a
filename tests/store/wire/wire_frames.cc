#include "tests/store/wire/wire_frames.h"

#include <cstring>

namespace rankrun::store {
namespace {

// Fields by opcode; the last opcode exists in the old dialect only. k: a key,
// v: a value, n: 8 bytes, p: 4 bytes, K: a count and keys, E: a count and keys
// with values, -: nothing.
constexpr std::string_view kCurrent[] = {"!", "kv", "kvv", "k", "kn", "K", "K", "-", "k",  "kv",
                                         "K", "E",  "-",   "p", "kv", "k", "k", "-", "kn", "k"};
constexpr size_t kCurrentCount = std::size(kCurrent) - 1;
// The old dialect's opcodes, as opcodes of the current one.
constexpr char kOld[] = {1, 2, 3, 4, 5, 6, 7, kCurrentCount, 8};

// Reason why reading stopped.
enum class Stop { kNot, kBroken, kMore };

class Reader {
 public:
  Reader(std::string_view bytes, const WireLimits& limits) : rest_(bytes), limits_(limits) {}

  Frames Run() {
    if (rest_.starts_with(EncodeValidate())) {
      rest_.remove_prefix(EncodeValidate().size());
    } else if (Stop stop = DetectOldDialect(); stop != Stop::kNot) {
      return Finish(stop);
    }
    while (!rest_.empty()) {
      if (Stop stop = Request(); stop != Stop::kNot) return Finish(stop);
    }
    return std::move(frames_);
  }

 private:
  Frames Finish(Stop stop) {
    frames_.broken = stop == Stop::kBroken;
    frames_.within_request = stop == Stop::kMore;
    return std::move(frames_);
  }

  // A connection that begins with SET needs 4 more bytes to detect its dialect.
  Stop DetectOldDialect() {
    if (rest_.empty()) return Stop::kNot;
    if (static_cast<unsigned char>(rest_[0]) >= std::size(kOld)) return Stop::kBroken;
    if (rest_[0] == 0) {
      if (rest_.size() < 5) return Stop::kMore;
      uint32_t low_half = 0;
      std::memcpy(&low_half, rest_.data() + 1, sizeof low_half);
      if (low_half > limits_.key_bytes) return Stop::kBroken;
    }
    frames_.old_dialect = true;
    return Stop::kNot;
  }

  Stop Request() {
    auto opcode = static_cast<unsigned char>(rest_[0]);
    if (opcode >= (frames_.old_dialect ? std::size(kOld) : kCurrentCount)) {
      return Stop::kBroken;
    }
    if (frames_.old_dialect) opcode = static_cast<unsigned char>(kOld[opcode]);
    frame_ = static_cast<char>(opcode);
    string_bytes_ = 0;
    rest_.remove_prefix(1);
    for (char field : kCurrent[opcode]) {
      if (Stop stop = Field(field); stop != Stop::kNot) return stop;
    }
    frames_.requests.push_back(frame_);
    return Stop::kNot;
  }

  Stop Field(char field) {
    if (field == '!') return Stop::kBroken;
    if (field == 'k') return String(limits_.key_bytes);
    if (field == 'v') return String(limits_.value_bytes);
    if (field == 'n') return Copy(8);
    if (field == 'p') return Copy(4);
    if (field == '-') return Stop::kNot;
    uint64_t count = 0;
    if (Stop stop = Number(count, limits_.keys_per_request); stop != Stop::kNot) return stop;
    for (; count > 0; --count) {
      if (Stop stop = String(limits_.key_bytes); stop != Stop::kNot) return stop;
      if (field == 'K') continue;
      if (Stop stop = String(limits_.value_bytes); stop != Stop::kNot) return stop;
    }
    return Stop::kNot;
  }

  Stop String(size_t limit) {
    uint64_t length = 0;
    if (Stop stop = Number(length, limit); stop != Stop::kNot) return stop;
    string_bytes_ += length;
    if (string_bytes_ > limits_.request_bytes) return Stop::kBroken;
    return Copy(length);
  }

  Stop Number(uint64_t& number, size_t limit) {
    if (Stop stop = Copy(sizeof number); stop != Stop::kNot) return stop;
    std::memcpy(&number, frame_.data() + frame_.size() - sizeof number, sizeof number);
    return number > limit ? Stop::kBroken : Stop::kNot;
  }

  Stop Copy(size_t count) {
    if (rest_.size() < count) return Stop::kMore;
    frame_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
    return Stop::kNot;
  }

  std::string_view rest_;
  const WireLimits limits_;
  Frames frames_;
  std::string frame_;          // bytes of the next request so far
  uint64_t string_bytes_ = 0;  // size of its keys and values
};

}  // namespace

Frames ReadFrames(std::string_view bytes, const WireLimits& limits) {
  return Reader(bytes, limits).Run();
}

}  // namespace rankrun::store
