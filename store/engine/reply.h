#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rankrun::store {

// Replies of a store server to the requests of request.h.

// Reply to GET and COMPARE_SET.
struct ValueReply {
  std::string value;
  bool operator==(const ValueReply&) const = default;
};
// Reply to ADD (the sum), DELETE_KEY (number of deleted keys), GETNUMKEYS and
// QUEUE_LEN.
struct NumberReply {
  int64_t number;
  bool operator==(const NumberReply&) const = default;
};
enum class CheckReply : uint8_t { kReady = 0, kNotReady = 1 };
// Reply to WAIT and BARRIER once they are fulfilled, and to CANCEL_WAIT.
enum class WaitReply : uint8_t { kStopWaiting = 0, kWaitCanceled = 1 };
struct PingReply {
  uint32_t nonce;
  bool operator==(const PingReply&) const = default;
};

// Reply to MULTI_GET, in the order of its keys. A missing key has an empty
// value.
struct ValuesReply {
  std::vector<std::string> values;
  bool operator==(const ValuesReply&) const = default;
};
// Reply to LIST_KEYS, in no order.
struct KeysReply {
  std::vector<std::string> keys;
  bool operator==(const KeysReply&) const = default;
};
// Reply to QUEUE_POP.
struct PopReply {
  int64_t length_before;
  std::optional<std::string> value;  // none if the queue was empty
  bool operator==(const PopReply&) const = default;
};
// Immediate reply to WATCH_KEY.
enum class WatchReply : uint8_t { kRegistered = 3 };
// Unsolicited message to each connection that watches `key`.
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
