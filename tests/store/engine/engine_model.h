#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/engine/engine.h"

namespace rankrun::store {

// The simplest specification of the engine: it checks every wait whenever a key
// is set, and recounts everything each time. It has no limits.
class EngineModel {
 public:
  // Appends the replies to `request`. Returns whether it is accepted.
  bool Apply(ConnectionId from, const Request& request, std::vector<Outgoing>& replies) {
    return std::visit([&](const auto& one_kind) { return On(from, one_kind, replies); }, request);
  }
  void Disconnect(ConnectionId from);

  // Upper bound of the notices that `request` may cause, in bytes.
  size_t LargestNoticeBytes(const Request& request) const;

  // Size of the reply that the reply limit applies to; 0 if it does not.
  size_t LimitedReplyBytes(const Request& request) const;

  size_t key_count() const { return values_.size(); }
  size_t queue_count() const;
  size_t bytes() const;
  std::map<std::string, std::vector<ConnectionId>> ListWaits() const;  // waiters are sorted

 private:
  using Replies = std::vector<Outgoing>;
  struct Wait {
    ConnectionId connection;
    std::vector<std::string> missing;
    size_t slots = 0;  // number of names at the beginning
    bool is_barrier = false;
  };

  bool On(ConnectionId from, const SetRequest& r, Replies& replies);
  bool On(ConnectionId from, const CompareSetRequest& r, Replies& replies);
  bool On(ConnectionId from, const GetRequest& r, Replies& replies);
  bool On(ConnectionId from, const AddRequest& r, Replies& replies);
  bool On(ConnectionId from, const CheckRequest& r, Replies& replies);
  bool On(ConnectionId from, const WaitRequest& r, Replies& replies);
  bool On(ConnectionId from, const DeleteKeyRequest& r, Replies& replies);
  bool On(ConnectionId from, const CancelWaitRequest& r, Replies& replies);
  bool On(ConnectionId from, const PingRequest& r, Replies& replies);
  bool On(ConnectionId from, const GetNumKeysRequest& r, Replies& replies);
  bool On(ConnectionId from, const ListKeysRequest& r, Replies& replies);
  bool On(ConnectionId from, const AppendRequest& r, Replies& replies);
  bool On(ConnectionId from, const MultiGetRequest& r, Replies& replies);
  bool On(ConnectionId from, const MultiSetRequest& r, Replies& replies);
  bool On(ConnectionId from, const QueuePushRequest& r, Replies& replies);
  bool On(ConnectionId from, const QueuePopRequest& r, Replies& replies);
  bool On(ConnectionId from, const QueueLenRequest& r, Replies& replies);
  bool On(ConnectionId from, const BarrierRequest& r, Replies& replies);
  bool On(ConnectionId from, const WatchKeyRequest& r, Replies& replies);

  std::string ValueOf(const std::string& key) const;  // empty if missing
  size_t LengthOf(const std::string& queue) const;
  // nothing if the value is not a number
  std::optional<int64_t> Sum(const std::string& key, int64_t delta) const;
  std::vector<std::string> Missing(std::vector<std::string> keys) const;
  void CancelWaits(ConnectionId from);
  void Put(const std::string& key, const std::string& value, Replies& replies);
  void Assign(const std::string& key, const std::string& value, Replies& replies);
  void Notify(const NoticeReply& notice, Replies& replies) const;
  void Release(const std::string& key, bool barriers, Replies& replies);

  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
  std::vector<Wait> waits_;  // oldest first
  // Keys and their watchers, oldest first.
  std::vector<std::pair<std::string, ConnectionId>> watches_;
};

}  // namespace rankrun::store
