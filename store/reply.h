#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rankrun::store {

// What a store server answers to the requests of request.h.

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
// To WATCH_KEY, at once.
enum class WatchReply : uint8_t { kRegistered = 3 };
// To whoever watches `key`, unasked.
struct NoticeReply {
  enum class Change : uint8_t { kUpdated = 0, kCreated = 1, kDeleted = 2 };
  Change change;
  std::string key;
  std::string old_value;  // empty if the key was created
  std::string new_value;  // empty if it was deleted
  bool operator==(const NoticeReply&) const = default;
};

using Reply = std::variant<ValueReply, NumberReply, CheckReply, WaitReply, PingReply, ValuesReply,
                           KeysReply, PopReply, WatchReply, NoticeReply>;

}  // namespace rankrun::store
