#include "store/wire/wire.h"

#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "store/wire/opcode.h"

namespace rankrun::store {

struct Dialect {
  std::span<const Opcode> opcodes;  // indexed by the byte on the wire
  bool validates;                   // whether each connection begins with VALIDATE
};

namespace {

// PyTorch up to about 2.1.
constexpr Opcode kOldOpcodes[] = {
    Opcode::kSet,  Opcode::kCompareSet, Opcode::kGet,      Opcode::kAdd,       Opcode::kCheck,
    Opcode::kWait, Opcode::kGetNumKeys, Opcode::kWatchKey, Opcode::kDeleteKey,
};

constexpr auto kCurrentOpcodes = [] {
  std::array<Opcode, static_cast<size_t>(Opcode::kBarrier) + 1> opcodes{};
  for (size_t i = 0; i < opcodes.size(); ++i) opcodes[i] = static_cast<Opcode>(i);
  return opcodes;
}();

constexpr Dialect kOldDialect{kOldOpcodes, false};
constexpr Dialect kCurrentDialect{kCurrentOpcodes, true};

// First byte of a connection in the current dialect. In the old dialect the
// same byte is SET; the key length after it distinguishes the two.
constexpr uint8_t kValidateByte = 0;

// First byte of each request of PyTorch about 2.2.
constexpr uint8_t kMagicByte = kValidateMagic & 0xFF;

Error ProtocolError(std::string message) { return Error{ErrorCode::kProtocol, std::move(message)}; }

std::string Hex(uint64_t number) {
  std::array<char, 16> digits;
  auto end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  return std::string("0x").append(digits.begin(), end);
}

}  // namespace

// Most requests arrive whole. They are decoded in one shared place that stays
// in the cache. A place per connection would cost a server of thousands of
// clients a tenth more time.
Result<Request*> RequestDecoder::Next(std::string_view& bytes) {
  thread_local PartialRequest whole;  // idle between calls
  thread_local Request request;
  PartialRequest& reading = half_ != nullptr ? *half_ : whole;
  auto complete = ReadRequest(reading, bytes);
  if (!complete) {
    reading.Clear();
    return std::move(complete).error();
  }
  if (*complete) {
    reading.Finish(request);
    half_.reset();
    return &request;
  }
  if (reading.is_idle()) {
    half_.reset();
  } else if (half_ == nullptr) {
    half_ = std::make_unique<PartialRequest>(std::exchange(whole, {}));
  }
  return nullptr;
}

bool RequestDecoder::cancels_waits() const { return dialect_ == nullptr || dialect_->validates; }

Result<bool> RequestDecoder::ReadRequest(PartialRequest& reading, std::string_view& bytes) {
  while (dialect_ == nullptr) {
    if (bytes.empty()) return false;
    auto detected = DetectDialect(reading, bytes);
    if (!detected || !*detected) return detected;
  }
  if (!reading.has_begun()) {
    if (bytes.empty()) return false;
    auto begun = Begin(reading, static_cast<uint8_t>(bytes.front()));
    if (!begun) return std::move(begun).error();
    bytes.remove_prefix(1);
  }
  return reading.Read(bytes, limits_);
}

// Consumes the first bytes of the connection. Returns whether they were enough
// to detect the dialect.
Result<bool> RequestDecoder::DetectDialect(PartialRequest& reading, std::string_view& bytes) {
  if (!begun_with_validate_) {
    auto first = static_cast<uint8_t>(bytes.front());
    if (first != kValidateByte) return DetectDialectWithoutValidate(first);
    bytes.remove_prefix(1);
    begun_with_validate_ = true;
  }
  if (!reading.ReadNumber(bytes, sizeof kValidateMagic)) return false;
  if (reading.number() == kValidateMagic) {
    dialect_ = &kCurrentDialect;
    return true;
  }
  if (reading.number() > limits_.key_bytes) {
    return ProtocolError("VALIDATE with " + Hex(reading.number()) + " instead of " +
                         Hex(kValidateMagic) + " (no store client)");
  }
  dialect_ = &kOldDialect;
  reading.BeginWithHalfLength(OperationOf(Opcode::kSet));
  return true;
}

Result<bool> RequestDecoder::DetectDialectWithoutValidate(uint8_t first) {
  if (first < kOldDialect.opcodes.size()) {
    dialect_ = &kOldDialect;
    return true;
  }
  if (first == kMagicByte) {
    return ProtocolError("the connection begins with " + Hex(first) +
                         ", as PyTorch of about 2.2 does, whose protocol is not supported");
  }
  bool known = first < kCurrentDialect.opcodes.size();
  return ProtocolError(
      "operation " +
      (known ? std::string(OperationOf(static_cast<Opcode>(first)).name) : std::to_string(first)) +
      " came before VALIDATE (no store client)");
}

Result<void> RequestDecoder::Begin(PartialRequest& reading, uint8_t byte) const {
  if (byte >= dialect_->opcodes.size()) {
    return ProtocolError("operation " + std::to_string(byte) + " is unknown");
  }
  const Operation& operation = OperationOf(dialect_->opcodes[byte]);
  if (operation.opcode == Opcode::kValidate) {
    return ProtocolError("operation VALIDATE came a second time");
  }
  reading.Begin(operation);
  return {};
}

}  // namespace rankrun::store
