#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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
struct GetNumKeysRequest {
  bool operator==(const GetNumKeysRequest&) const = default;
};
struct ListKeysRequest {
  bool operator==(const ListKeysRequest&) const = default;
};
struct AppendRequest {
  std::string key;
  std::string value;
  bool operator==(const AppendRequest&) const = default;
};
struct MultiGetRequest {
  std::vector<std::string> keys;
  bool operator==(const MultiGetRequest&) const = default;
};
struct MultiSetRequest {
  std::vector<std::pair<std::string, std::string>> entries;  // keys and their values
  bool operator==(const MultiSetRequest&) const = default;
};
struct QueuePushRequest {
  std::string key;
  std::string value;
  bool operator==(const QueuePushRequest&) const = default;
};
struct QueuePopRequest {
  std::string key;
  bool operator==(const QueuePopRequest&) const = default;
};
struct QueueLenRequest {
  std::string key;
  bool operator==(const QueueLenRequest&) const = default;
};
// Counts arrivals at `key`, and waits until there are `world_size`.
struct BarrierRequest {
  std::string key;
  int64_t world_size;
  bool operator==(const BarrierRequest&) const = default;
};

using Request =
    std::variant<SetRequest, CompareSetRequest, GetRequest, AddRequest, CheckRequest, WaitRequest,
                 DeleteKeyRequest, CancelWaitRequest, PingRequest, GetNumKeysRequest,
                 ListKeysRequest, AppendRequest, MultiGetRequest, MultiSetRequest, QueuePushRequest,
                 QueuePopRequest, QueueLenRequest, BarrierRequest>;

// To GET and COMPARE_SET.
struct ValueReply {
  std::string value;
  bool operator==(const ValueReply&) const = default;
};
// To ADD (the sum), DELETE_KEY (how many were deleted), GETNUMKEYS and
// QUEUE_LEN.
struct NumberReply {
  int64_t number;
  bool operator==(const NumberReply&) const = default;
};
enum class CheckReply : uint8_t { kReady = 0, kNotReady = 1 };
// To WAIT and BARRIER, whenever they are fulfilled, and to CANCEL_WAIT.
enum class WaitReply : uint8_t { kStopWaiting = 0, kWaitCanceled = 1 };
struct PingReply {
  uint32_t nonce;
  bool operator==(const PingReply&) const = default;
};

// To MULTI_GET, in the order of its keys; of a missing key it is empty.
struct ValuesReply {
  std::vector<std::string> values;
  bool operator==(const ValuesReply&) const = default;
};
// To LIST_KEYS, in no order.
struct KeysReply {
  std::vector<std::string> keys;
  bool operator==(const KeysReply&) const = default;
};
// To QUEUE_POP.
struct PopReply {
  int64_t length_before;
  std::optional<std::string> value;  // none if the queue was empty
  bool operator==(const PopReply&) const = default;
};

using Reply = std::variant<ValueReply, NumberReply, CheckReply, WaitReply, PingReply, ValuesReply,
                           KeysReply, PopReply>;

}  // namespace rankrun::store
