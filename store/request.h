#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace rankrun::store {

// What a client may ask of a store server, and what it is answered: values
// between the wire, which knows bytes, and the engine, which knows keys.
// Names and meaning are those of docs/store-protocol.md.

struct SetRequest {
  std::string key;
  std::string value;
  bool operator==(const SetRequest&) const = default;
};
struct CompareSetRequest {
  std::string key;
  std::string expected;
  std::string desired;
  bool operator==(const CompareSetRequest&) const = default;
};
struct GetRequest {
  std::string key;
  bool operator==(const GetRequest&) const = default;
};
struct AddRequest {
  std::string key;
  int64_t delta;
  bool operator==(const AddRequest&) const = default;
};
struct CheckRequest {
  std::vector<std::string> keys;
  bool operator==(const CheckRequest&) const = default;
};
struct WaitRequest {
  std::vector<std::string> keys;
  bool operator==(const WaitRequest&) const = default;
};
struct DeleteKeyRequest {
  std::string key;
  bool operator==(const DeleteKeyRequest&) const = default;
};
struct CancelWaitRequest {
  bool operator==(const CancelWaitRequest&) const = default;
};
struct PingRequest {
  uint32_t nonce;
  bool operator==(const PingRequest&) const = default;
};

using Request = std::variant<SetRequest, CompareSetRequest, GetRequest, AddRequest, CheckRequest,
                             WaitRequest, DeleteKeyRequest, CancelWaitRequest, PingRequest>;

// To GET and COMPARE_SET.
struct ValueReply {
  std::string value;
  bool operator==(const ValueReply&) const = default;
};
// To ADD (the sum) and DELETE_KEY (how many were deleted).
struct NumberReply {
  int64_t number;
  bool operator==(const NumberReply&) const = default;
};
enum class CheckReply : uint8_t { kReady = 0, kNotReady = 1 };
// To WAIT, whenever it is fulfilled, and to CANCEL_WAIT.
enum class WaitReply : uint8_t { kStopWaiting = 0, kWaitCanceled = 1 };
struct PingReply {
  uint32_t nonce;
  bool operator==(const PingReply&) const = default;
};

using Reply = std::variant<ValueReply, NumberReply, CheckReply, WaitReply, PingReply>;

}  // namespace rankrun::store
