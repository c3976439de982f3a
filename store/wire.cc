#include "store/wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/check.h"

namespace rankrun::store {
namespace {

enum class Opcode : uint8_t {
  kValidate = 0,
  kSet = 1,
  kCompareSet = 2,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kGetNumKeys = 7,
  kDeleteKey = 8,
  kAppend = 9,
  kMultiGet = 10,
  kMultiSet = 11,
  kCancelWait = 12,
  kPing = 13,
  kQueuePush = 14,
  kQueuePop = 15,
  kQueueLen = 16,
  kListKeys = 17,
  kBarrier = 18,
};

// What follows the opcode, in order.
enum class Field : uint8_t { kNone, kMagic, kNonce, kNumber, kKey, kValue, kKeys };

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
  Request (*build)(Parts);  // null: no request for the engine
  bool supported = true;
};

namespace {

// Row i has opcode i.
constexpr Operation kOperations[] = {
    {Opcode::kValidate, "VALIDATE", {Field::kMagic}, nullptr},
    {Opcode::kSet,
     "SET",
     {Field::kKey, Field::kValue},
     [](Parts p) -> Request {
       return SetRequest{std::move(p.strings[0]), std::move(p.strings[1])};
     }},
    {Opcode::kCompareSet,
     "COMPARE_SET",
     {Field::kKey, Field::kValue, Field::kValue},
     [](Parts p) -> Request {
       return CompareSetRequest{std::move(p.strings[0]), std::move(p.strings[1]),
                                std::move(p.strings[2])};
     }},
    {Opcode::kGet,
     "GET",
     {Field::kKey},
     [](Parts p) -> Request { return GetRequest{std::move(p.strings[0])}; }},
    {Opcode::kAdd,
     "ADD",
     {Field::kKey, Field::kNumber},
     [](Parts p) -> Request {
       return AddRequest{std::move(p.strings[0]), static_cast<int64_t>(p.number)};
     }},
    {Opcode::kCheck,
     "CHECK",
     {Field::kKeys},
     [](Parts p) -> Request { return CheckRequest{std::move(p.strings)}; }},
    {Opcode::kWait,
     "WAIT",
     {Field::kKeys},
     [](Parts p) -> Request { return WaitRequest{std::move(p.strings)}; }},
    {Opcode::kGetNumKeys, "GETNUMKEYS", {}, nullptr, false},
    {Opcode::kDeleteKey,
     "DELETE_KEY",
     {Field::kKey},
     [](Parts p) -> Request { return DeleteKeyRequest{std::move(p.strings[0])}; }},
    {Opcode::kAppend, "APPEND", {}, nullptr, false},
    {Opcode::kMultiGet, "MULTI_GET", {}, nullptr, false},
    {Opcode::kMultiSet, "MULTI_SET", {}, nullptr, false},
    {Opcode::kCancelWait, "CANCEL_WAIT", {}, [](Parts) -> Request { return CancelWaitRequest{}; }},
    {Opcode::kPing,
     "PING",
     {Field::kNonce},
     [](Parts p) -> Request { return PingRequest{static_cast<uint32_t>(p.number)}; }},
    {Opcode::kQueuePush, "QUEUE_PUSH", {}, nullptr, false},
    {Opcode::kQueuePop, "QUEUE_POP", {}, nullptr, false},
    {Opcode::kQueueLen, "QUEUE_LEN", {}, nullptr, false},
    {Opcode::kListKeys, "LIST_KEYS", {}, nullptr, false},
    {Opcode::kBarrier, "BARRIER", {}, nullptr, false},
};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

Error ProtocolError(std::string message) { return Error{ErrorCode::kProtocol, std::move(message)}; }

std::string Hex(uint64_t number) {
  std::array<char, 16> digits;
  auto end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  return std::string("0x").append(digits.begin(), end);
}

template <typename T>
void AppendInteger(std::string& out, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

void AppendString(std::string& out, std::string_view text) {
  AppendInteger(out, static_cast<uint64_t>(text.size()));
  out += text;
}

// Grows `text` at most to twice what has arrived, and to no more than the
// announced length, so that a finished value carries no spare room.
void AppendArrived(std::string& text, std::string_view part, size_t announced) {
  size_t needed = text.size() + part.size();
  if (needed > text.capacity()) text.reserve(std::min(announced, 2 * needed));
  text += part;
}

struct RequestWriter {
  std::string& out;

  void Begin(Opcode opcode) { out += static_cast<char>(opcode); }
  void Keys(const std::vector<std::string>& keys) {
    AppendInteger(out, static_cast<uint64_t>(keys.size()));
    for (const std::string& key : keys) AppendString(out, key);
  }

  void operator()(const SetRequest& request) {
    Begin(Opcode::kSet);
    AppendString(out, request.key);
    AppendString(out, request.value);
  }
  void operator()(const CompareSetRequest& request) {
    Begin(Opcode::kCompareSet);
    AppendString(out, request.key);
    AppendString(out, request.expected);
    AppendString(out, request.desired);
  }
  void operator()(const GetRequest& request) {
    Begin(Opcode::kGet);
    AppendString(out, request.key);
  }
  void operator()(const AddRequest& request) {
    Begin(Opcode::kAdd);
    AppendString(out, request.key);
    AppendInteger(out, request.delta);
  }
  void operator()(const CheckRequest& request) {
    Begin(Opcode::kCheck);
    Keys(request.keys);
  }
  void operator()(const WaitRequest& request) {
    Begin(Opcode::kWait);
    Keys(request.keys);
  }
  void operator()(const DeleteKeyRequest& request) {
    Begin(Opcode::kDeleteKey);
    AppendString(out, request.key);
  }
  void operator()(const CancelWaitRequest&) { Begin(Opcode::kCancelWait); }
  void operator()(const PingRequest& request) {
    Begin(Opcode::kPing);
    AppendInteger(out, request.nonce);
  }
};

struct ReplyWriter {
  std::string& out;

  void operator()(const ValueReply& reply) { AppendString(out, reply.value); }
  void operator()(const NumberReply& reply) { AppendInteger(out, reply.number); }
  void operator()(CheckReply reply) { out += static_cast<char>(reply); }
  void operator()(WaitReply reply) { out += static_cast<char>(reply); }
  void operator()(const PingReply& reply) { AppendInteger(out, reply.nonce); }
};

}  // namespace

Result<std::optional<Request>> RequestDecoder::Next(std::string_view& bytes) {
  while (operation_ != nullptr || !bytes.empty()) {
    if (operation_ == nullptr) {
      auto begun = Begin(static_cast<uint8_t>(bytes.front()));
      if (!begun) return std::move(begun).error();
      bytes.remove_prefix(1);
    }
    auto complete = ReadFields(bytes);
    if (!complete) return std::move(complete).error();
    if (!*complete) break;
    if (auto request = Finish()) return request;
  }
  return std::optional<Request>();
}

size_t RequestDecoder::held_bytes() const {
  return string_bytes_ + strings_.size() * sizeof(std::string);
}

Result<void> RequestDecoder::Begin(uint8_t opcode) {
  bool known = opcode < std::size(kOperations);
  std::string name = known ? std::string(kOperations[opcode].name) : std::to_string(opcode);
  bool is_validate = opcode == static_cast<uint8_t>(Opcode::kValidate);
  if (!validated_ && !is_validate) {
    return ProtocolError("operation " + name +
                         " came before VALIDATE (no store client, or one of PyTorch before 2.3)");
  }
  if (validated_ && is_validate) return ProtocolError("operation VALIDATE came a second time");
  if (!known) return ProtocolError("operation " + name + " is unknown");
  if (!kOperations[opcode].supported) {
    return ProtocolError("operation " + name + " is not supported");
  }
  operation_ = &kOperations[opcode];
  return {};
}

std::optional<Request> RequestDecoder::Finish() {
  std::optional<Request> request;
  if (operation_->build != nullptr) request = operation_->build({strings_, number_});
  operation_ = nullptr;
  field_ = 0;
  strings_.clear();
  string_bytes_ = 0;
  return request;
}

Result<bool> RequestDecoder::ReadFields(std::string_view& bytes) {
  for (; field_ < operation_->fields.size(); ++field_) {
    Result<bool> complete = true;
    switch (operation_->fields[field_]) {
      case Field::kNone:
        return true;
      case Field::kMagic:
        complete = ReadMagic(bytes);
        break;
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
        complete = ReadKeys(bytes);
        break;
    }
    if (!complete || !*complete) return complete;
  }
  return true;
}

Result<bool> RequestDecoder::ReadMagic(std::string_view& bytes) {
  if (!ReadNumber(bytes, sizeof kValidateMagic)) return false;
  if (number_ != kValidateMagic) {
    return ProtocolError("VALIDATE with " + Hex(number_) + " instead of " + Hex(kValidateMagic) +
                         " (no store client, or one of PyTorch before 2.3)");
  }
  validated_ = true;
  return true;
}

Result<bool> RequestDecoder::ReadKeys(std::string_view& bytes) {
  if (!keys_left_) {
    if (!ReadNumber(bytes, sizeof(uint64_t))) return false;
    if (number_ > limits_.keys_per_request) {
      return ProtocolError(std::string(operation_->name) + " of " + std::to_string(number_) +
                           " keys is over the limit of " +
                           std::to_string(limits_.keys_per_request));
    }
    keys_left_ = number_;
  }
  while (*keys_left_ > 0) {
    auto complete = ReadString(bytes, "key", limits_.key_bytes);
    if (!complete || !*complete) return complete;
    *keys_left_ -= 1;
  }
  keys_left_.reset();
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

void AppendReply(std::string& out, const Reply& reply) { std::visit(ReplyWriter{out}, reply); }

std::string EncodeValidate() {
  std::string out(1, static_cast<char>(Opcode::kValidate));
  AppendInteger(out, kValidateMagic);
  return out;
}

std::string EncodeRequest(const Request& request) {
  std::string out;
  std::visit(RequestWriter{out}, request);
  return out;
}

}  // namespace rankrun::store
