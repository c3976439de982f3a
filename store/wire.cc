#include "store/wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "base/check.h"
#include "store/opcode.h"

namespace rankrun::store {
namespace {

// What follows the opcode, in order.
enum class Field : uint8_t { kNone, kNonce, kNumber, kKey, kValue, kKeys, kEntries };

// What was read of one request.
struct Parts {
  std::vector<std::string>& strings;
  uint64_t number;
};

}  // namespace

struct Operation {
  Opcode opcode;
  std::string_view name;
  std::array<Field, 3> fields;
  void (*build)(Parts, Request&);  // null: of VALIDATE, which is no request
};

// How one generation of PyTorch numbers the operations.
struct Dialect {
  std::span<const Opcode> opcodes;  // by the byte that stands for them
  bool validates;                   // whether a connection begins with VALIDATE
};

namespace {

void BuildMultiSet(Parts p, Request& request) {
  auto& entries = request.emplace<MultiSetRequest>().entries;
  entries.reserve(p.strings.size() / 2);
  for (size_t i = 0; i + 1 < p.strings.size(); i += 2) {
    entries.emplace_back(std::move(p.strings[i]), std::move(p.strings[i + 1]));
  }
}

// One request that is made of a key; of a key and a value; of keys; of nothing.
template <typename R>
void OfKey(Parts p, Request& request) {
  request.emplace<R>(std::move(p.strings[0]));
}
template <typename R>
void OfKeyAndValue(Parts p, Request& request) {
  request.emplace<R>(std::move(p.strings[0]), std::move(p.strings[1]));
}
template <typename R>
void OfKeyAndNumber(Parts p, Request& request) {
  request.emplace<R>(std::move(p.strings[0]), static_cast<int64_t>(p.number));
}
template <typename R>
void OfKeys(Parts p, Request& request) {
  request.emplace<R>(std::move(p.strings));
}
template <typename R>
void OfNothing(Parts, Request& request) {
  request.emplace<R>();
}

void BuildCompareSet(Parts p, Request& request) {
  request.emplace<CompareSetRequest>(std::move(p.strings[0]), std::move(p.strings[1]),
                                     std::move(p.strings[2]));
}

void BuildPing(Parts p, Request& request) {
  request.emplace<PingRequest>(static_cast<uint32_t>(p.number));
}

// Row i is of opcode i.
constexpr Operation kOperations[] = {
    {Opcode::kValidate, "VALIDATE", {}, nullptr},
    {Opcode::kSet, SetRequest::kName, {Field::kKey, Field::kValue}, OfKeyAndValue<SetRequest>},
    {Opcode::kCompareSet,
     CompareSetRequest::kName,
     {Field::kKey, Field::kValue, Field::kValue},
     BuildCompareSet},
    {Opcode::kGet, GetRequest::kName, {Field::kKey}, OfKey<GetRequest>},
    {Opcode::kAdd, AddRequest::kName, {Field::kKey, Field::kNumber}, OfKeyAndNumber<AddRequest>},
    {Opcode::kCheck, CheckRequest::kName, {Field::kKeys}, OfKeys<CheckRequest>},
    {Opcode::kWait, WaitRequest::kName, {Field::kKeys}, OfKeys<WaitRequest>},
    {Opcode::kGetNumKeys, GetNumKeysRequest::kName, {}, OfNothing<GetNumKeysRequest>},
    {Opcode::kDeleteKey, DeleteKeyRequest::kName, {Field::kKey}, OfKey<DeleteKeyRequest>},
    {Opcode::kAppend,
     AppendRequest::kName,
     {Field::kKey, Field::kValue},
     OfKeyAndValue<AppendRequest>},
    {Opcode::kMultiGet, MultiGetRequest::kName, {Field::kKeys}, OfKeys<MultiGetRequest>},
    {Opcode::kMultiSet, MultiSetRequest::kName, {Field::kEntries}, BuildMultiSet},
    {Opcode::kCancelWait, CancelWaitRequest::kName, {}, OfNothing<CancelWaitRequest>},
    {Opcode::kPing, PingRequest::kName, {Field::kNonce}, BuildPing},
    {Opcode::kQueuePush,
     QueuePushRequest::kName,
     {Field::kKey, Field::kValue},
     OfKeyAndValue<QueuePushRequest>},
    {Opcode::kQueuePop, QueuePopRequest::kName, {Field::kKey}, OfKey<QueuePopRequest>},
    {Opcode::kQueueLen, QueueLenRequest::kName, {Field::kKey}, OfKey<QueueLenRequest>},
    {Opcode::kListKeys, ListKeysRequest::kName, {}, OfNothing<ListKeysRequest>},
    {Opcode::kBarrier,
     BarrierRequest::kName,
     {Field::kKey, Field::kNumber},
     OfKeyAndNumber<BarrierRequest>},
    {Opcode::kWatchKey, WatchKeyRequest::kName, {Field::kKey}, OfKey<WatchKeyRequest>},
};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

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

// With which a connection of the current dialect begins. In the old one it is
// SET, whose key's length comes next and tells the two apart.
constexpr uint8_t kValidateByte = 0;

// With which PyTorch of about 2.2 began each request.
constexpr uint8_t kMagicByte = kValidateMagic & 0xFF;

Error ProtocolError(std::string message) { return Error{ErrorCode::kProtocol, std::move(message)}; }

std::string Hex(uint64_t number) {
  std::array<char, 16> digits;
  auto end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  return std::string("0x").append(digits.begin(), end);
}

// Grows `text` at most to twice what has arrived, and to no more than the
// announced length, so that a finished value carries no spare room.
void AppendArrived(std::string& text, std::string_view part, size_t announced) {
  size_t needed = text.size() + part.size();
  if (needed > text.capacity()) text.reserve(std::min(announced, 2 * needed));
  text += part;
}

}  // namespace

Result<Request*> RequestDecoder::Next(std::string_view& bytes) {
  while (operation_ != nullptr || !bytes.empty()) {
    if (dialect_ == nullptr) {
      auto told = TellDialect(bytes);
      if (!told) return std::move(told).error();
      if (!*told) break;
      continue;
    }
    if (operation_ == nullptr) {
      auto begun = Begin(static_cast<uint8_t>(bytes.front()));
      if (!begun) return std::move(begun).error();
      bytes.remove_prefix(1);
    }
    auto complete = ReadFields(bytes);
    if (!complete) return std::move(complete).error();
    if (!*complete) break;
    Finish();
    return &request_;
  }
  return nullptr;
}

size_t RequestDecoder::held_bytes() const {
  size_t spare = 0;
  if (!strings_.empty() && strings_.back().capacity() >= sizeof(std::string)) {
    spare = strings_.back().capacity() - strings_.back().size();
  }
  return string_bytes_ + spare + strings_.size() * sizeof(std::string);
}

bool RequestDecoder::cancels_waits() const { return dialect_ == nullptr || dialect_->validates; }

// Whether the first bytes of the connection, which it takes, were enough.
Result<bool> RequestDecoder::TellDialect(std::string_view& bytes) {
  if (!begun_with_validate_) {
    auto first = static_cast<uint8_t>(bytes.front());
    if (first != kValidateByte) return TellDialectWithoutValidate(first);
    bytes.remove_prefix(1);
    begun_with_validate_ = true;
  }
  if (!ReadNumber(bytes, sizeof kValidateMagic)) return false;
  if (number_ == kValidateMagic) {
    dialect_ = &kCurrentDialect;
    return true;
  }
  if (number_ > limits_.key_bytes) {
    return ProtocolError("VALIDATE with " + Hex(number_) + " instead of " + Hex(kValidateMagic) +
                         " (no store client)");
  }
  dialect_ = &kOldDialect;
  operation_ = &kOperations[static_cast<size_t>(Opcode::kSet)];
  word_bytes_ = sizeof kValidateMagic;  // word_ holds the first half of the length
  return true;
}

Result<bool> RequestDecoder::TellDialectWithoutValidate(uint8_t first) {
  if (first < kOldDialect.opcodes.size()) {
    dialect_ = &kOldDialect;
    return true;
  }
  if (first == kMagicByte) {
    return ProtocolError("the connection begins with " + Hex(first) +
                         ", as PyTorch of about 2.2 does, whose protocol is not supported");
  }
  bool known = first < kCurrentDialect.opcodes.size();
  return ProtocolError("operation " +
                       (known ? std::string(kOperations[first].name) : std::to_string(first)) +
                       " came before VALIDATE (no store client)");
}

Result<void> RequestDecoder::Begin(uint8_t byte) {
  if (byte >= dialect_->opcodes.size()) {
    return ProtocolError("operation " + std::to_string(byte) + " is unknown");
  }
  const Operation& operation = kOperations[static_cast<size_t>(dialect_->opcodes[byte])];
  if (operation.opcode == Opcode::kValidate) {
    return ProtocolError("operation VALIDATE came a second time");
  }
  operation_ = &operation;
  return {};
}

void RequestDecoder::Finish() {
  operation_->build({strings_, number_}, request_);
  operation_ = nullptr;
  field_ = 0;
  strings_.clear();
  string_bytes_ = 0;
}

Result<bool> RequestDecoder::ReadFields(std::string_view& bytes) {
  for (; field_ < operation_->fields.size(); ++field_) {
    Result<bool> complete = true;
    switch (operation_->fields[field_]) {
      case Field::kNone:
        return true;
      case Field::kNonce:
        complete = ReadNumber(bytes, sizeof(uint32_t));
        break;
      case Field::kNumber:
        complete = ReadNumber(bytes, sizeof(uint64_t));
        break;
      case Field::kKey:
        complete = ReadString(bytes, "key", limits_.key_bytes);
        break;
      case Field::kValue:
        complete = ReadString(bytes, "value", limits_.value_bytes);
        break;
      case Field::kKeys:
        complete = ReadList(bytes, /*with_values=*/false);
        break;
      case Field::kEntries:
        complete = ReadList(bytes, /*with_values=*/true);
        break;
    }
    if (!complete || !*complete) return complete;
  }
  return true;
}

// A count, then so many keys, or keys each followed by its value.
Result<bool> RequestDecoder::ReadList(std::string_view& bytes, bool with_values) {
  const uint64_t strings_per_key = with_values ? 2 : 1;
  if (!list_left_) {
    if (!ReadNumber(bytes, sizeof(uint64_t))) return false;
    if (number_ > limits_.keys_per_request) {
      return ProtocolError(std::string(operation_->name) + " of " + std::to_string(number_) +
                           " keys is over the limit of " +
                           std::to_string(limits_.keys_per_request));
    }
    list_left_ = number_ * strings_per_key;
  }
  while (*list_left_ > 0) {
    bool is_key = *list_left_ % strings_per_key == 0;
    auto complete = is_key ? ReadString(bytes, "key", limits_.key_bytes)
                           : ReadString(bytes, "value", limits_.value_bytes);
    if (!complete || !*complete) return complete;
    *list_left_ -= 1;
  }
  list_left_.reset();
  return true;
}

Result<bool> RequestDecoder::ReadString(std::string_view& bytes, std::string_view what,
                                        size_t limit) {
  if (!length_) {
    if (!ReadNumber(bytes, sizeof(uint64_t))) return false;
    if (number_ > limit) {
      return ProtocolError(std::string(operation_->name) + " with a " + std::string(what) + " of " +
                           std::to_string(number_) + " bytes is over the limit of " +
                           std::to_string(limit));
    }
    if (number_ > limits_.request_bytes - string_bytes_) {
      return ProtocolError(
          std::string(operation_->name) + " of " + std::to_string(string_bytes_ + number_) +
          " bytes or more is over the limit of " + std::to_string(limits_.request_bytes));
    }
    if (number_ <= bytes.size()) {
      strings_.emplace_back(bytes.substr(0, number_));
      string_bytes_ += number_;
      bytes.remove_prefix(number_);
      return true;
    }
    length_ = number_;
    strings_.emplace_back();
  }
  std::string& text = strings_.back();
  std::string_view part = bytes.substr(0, *length_ - text.size());
  AppendArrived(text, part, *length_);
  string_bytes_ += part.size();
  bytes.remove_prefix(part.size());
  if (text.size() < *length_) return false;
  length_.reset();
  return true;
}

bool RequestDecoder::ReadNumber(std::string_view& bytes, size_t size) {
  if (word_bytes_ == 0 && size == sizeof number_ && bytes.size() >= size) {
    std::memcpy(&number_, bytes.data(), sizeof number_);
    bytes.remove_prefix(size);
    return true;
  }
  size_t part = std::min(bytes.size(), size - word_bytes_);
  std::copy_n(bytes.data(), part, word_.data() + word_bytes_);
  bytes.remove_prefix(part);
  word_bytes_ += part;
  if (word_bytes_ < size) return false;
  word_bytes_ = 0;
  if (size == sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, word_.data(), sizeof word);
    number_ = word;
  } else {
    RANKRUN_CHECK(size == sizeof number_, "integers on the wire have 4 or 8 bytes");
    std::memcpy(&number_, word_.data(), sizeof number_);
  }
  return true;
}

}  // namespace rankrun::store
