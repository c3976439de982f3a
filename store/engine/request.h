#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rankrun::store {

// Requests of a client to a store server: values between the wire, which knows
// bytes, and the engine, which knows keys. For the replies see reply.h.
// Names and semantics: docs/store-protocol.md.

struct SetRequest {
  static constexpr std::string_view kName = "SET";
  std::string key;
  std::string value;
  bool operator==(const SetRequest&) const = default;
};
struct CompareSetRequest {
  static constexpr std::string_view kName = "COMPARE_SET";
  std::string key;
  std::string expected;
  std::string desired;
  bool operator==(const CompareSetRequest&) const = default;
};
struct GetRequest {
  static constexpr std::string_view kName = "GET";
  std::string key;
  bool operator==(const GetRequest&) const = default;
};
struct AddRequest {
  static constexpr std::string_view kName = "ADD";
  std::string key;
  int64_t delta;
  bool operator==(const AddRequest&) const = default;
};
struct CheckRequest {
  static constexpr std::string_view kName = "CHECK";
  std::vector<std::string> keys;
  bool operator==(const CheckRequest&) const = default;
};
struct WaitRequest {
  static constexpr std::string_view kName = "WAIT";
  std::vector<std::string> keys;
  bool operator==(const WaitRequest&) const = default;
};
struct DeleteKeyRequest {
  static constexpr std::string_view kName = "DELETE_KEY";
  std::string key;
  bool operator==(const DeleteKeyRequest&) const = default;
};
struct CancelWaitRequest {
  static constexpr std::string_view kName = "CANCEL_WAIT";
  bool operator==(const CancelWaitRequest&) const = default;
};
struct PingRequest {
  static constexpr std::string_view kName = "PING";
  uint32_t nonce;
  bool operator==(const PingRequest&) const = default;
};
struct GetNumKeysRequest {
  static constexpr std::string_view kName = "GETNUMKEYS";
  bool operator==(const GetNumKeysRequest&) const = default;
};
struct ListKeysRequest {
  static constexpr std::string_view kName = "LIST_KEYS";
  bool operator==(const ListKeysRequest&) const = default;
};
struct AppendRequest {
  static constexpr std::string_view kName = "APPEND";
  std::string key;
  std::string value;
  bool operator==(const AppendRequest&) const = default;
};
struct MultiGetRequest {
  static constexpr std::string_view kName = "MULTI_GET";
  std::vector<std::string> keys;
  bool operator==(const MultiGetRequest&) const = default;
};
struct MultiSetRequest {
  static constexpr std::string_view kName = "MULTI_SET";
  std::vector<std::pair<std::string, std::string>> entries;  // keys and their values
  bool operator==(const MultiSetRequest&) const = default;
};
struct QueuePushRequest {
  static constexpr std::string_view kName = "QUEUE_PUSH";
  std::string key;
  std::string value;
  bool operator==(const QueuePushRequest&) const = default;
};
struct QueuePopRequest {
  static constexpr std::string_view kName = "QUEUE_POP";
  std::string key;
  bool operator==(const QueuePopRequest&) const = default;
};
struct QueueLenRequest {
  static constexpr std::string_view kName = "QUEUE_LEN";
  std::string key;
  bool operator==(const QueueLenRequest&) const = default;
};
// Counts an arrival at `key` and waits until `world_size` have arrived.
struct BarrierRequest {
  static constexpr std::string_view kName = "BARRIER";
  std::string key;
  int64_t world_size;
  bool operator==(const BarrierRequest&) const = default;
};
// Old dialect only. Each later change of the key causes a NoticeReply.
struct WatchKeyRequest {
  static constexpr std::string_view kName = "WATCH_KEY";
  std::string key;
  bool operator==(const WatchKeyRequest&) const = default;
};

using Request =
    std::variant<SetRequest, CompareSetRequest, GetRequest, AddRequest, CheckRequest, WaitRequest,
                 DeleteKeyRequest, CancelWaitRequest, PingRequest, GetNumKeysRequest,
                 ListKeysRequest, AppendRequest, MultiGetRequest, MultiSetRequest, QueuePushRequest,
                 QueuePopRequest, QueueLenRequest, BarrierRequest, WatchKeyRequest>;

constexpr size_t kRequestKinds = std::variant_size_v<Request>;

// By Request::index().
constexpr auto kRequestNames = []<size_t... i>(std::index_sequence<i...>) {
  return std::array{std::variant_alternative_t<i, Request>::kName...};
}
(std::make_index_sequence<kRequestKinds>());

}  // namespace rankrun::store
