#include "tests/store/engine/engine_model.h"

#include <algorithm>
#include <exception>
#include <set>

#include "store/engine/engine_sizes.h"
#include "store/wire/wire.h"

namespace rankrun::store {

void EngineModel::Disconnect(ConnectionId from) {
  CancelWaits(from);
  std::erase_if(watches_, [&](const auto& watch) { return watch.second == from; });
}

void EngineModel::CancelWaits(ConnectionId from) {
  std::erase_if(waits_, [&](const Wait& wait) { return wait.connection == from; });
}

size_t EngineModel::LimitedReplyBytes(const Request& request) const {
  size_t bytes = 0;
  if (std::holds_alternative<ListKeysRequest>(request)) {
    for (const auto& [key, value] : values_) bytes += sizeof(uint64_t) + key.size();
  } else if (auto* many = std::get_if<MultiGetRequest>(&request)) {
    for (const std::string& key : many->keys) bytes += sizeof(uint64_t) + ValueOf(key).size();
  } else if (auto* append = std::get_if<AppendRequest>(&request)) {
    if (values_.contains(append->key)) bytes = ValueOf(append->key).size() + append->value.size();
  }
  return bytes;
}

size_t EngineModel::LargestNoticeBytes(const Request& request) const {
  constexpr size_t kMaxNumber = 20;
  if (std::holds_alternative<WatchKeyRequest>(request)) return 0;
  // An entry of a MULTI_SET may be the old value of the next one. The result of
  // APPEND begins with the old value.
  size_t new_bytes = kMaxNumber + 2 * EncodeRequest(request).size();
  size_t bytes = 0;
  for (const auto& [key, watcher] : watches_) {
    bytes += key.size() + 2 * ValueOf(key).size() + new_bytes;
  }
  return bytes;
}

size_t EngineModel::queue_count() const {
  return static_cast<size_t>(std::count_if(
      queues_.begin(), queues_.end(), [](const auto& queue) { return !queue.second.empty(); }));
}

size_t EngineModel::bytes() const {
  size_t bytes = 0;
  std::set<std::string> names;
  std::set<std::string> with_extras;
  for (const auto& [key, value] : values_) {
    names.insert(key);
    bytes += value.size();
  }
  for (const auto& [name, queue] : queues_) {
    if (!queue.empty()) with_extras.insert(name);
    for (const std::string& item : queue) bytes += kItemBytes + item.size();
  }
  for (const auto& [name, waiters] : ListWaits()) {
    with_extras.insert(name);
  }
  for (const Wait& wait : waits_) bytes += kWaitBytes + wait.slots * kWaiterBytes;
  for (const auto& [key, watcher] : watches_) {
    with_extras.insert(key);
    bytes += kWaiterBytes;
  }
  names.insert(with_extras.begin(), with_extras.end());
  for (const std::string& name : names) bytes += kEntryBytes + name.size();
  return bytes + with_extras.size() * kExtrasBytes;
}

std::map<std::string, std::vector<ConnectionId>> EngineModel::ListWaits() const {
  std::map<std::string, std::vector<ConnectionId>> waits;
  for (const Wait& wait : waits_) {
    std::set<std::string> missing(wait.missing.begin(), wait.missing.end());
    for (const std::string& name : missing) waits[name].push_back(wait.connection);
  }
  for (auto& [name, waiters] : waits) std::sort(waiters.begin(), waiters.end());
  return waits;
}

bool EngineModel::On(ConnectionId, const SetRequest& r, Replies& replies) {
  Put(r.key, r.value, replies);
  return true;
}

bool EngineModel::On(ConnectionId from, const CompareSetRequest& r, Replies& replies) {
  bool exists = values_.contains(r.key);
  if ((!exists && r.expected.empty()) || (exists && values_[r.key] == r.expected)) {
    Put(r.key, r.desired, replies);
    replies.push_back({from, ValueReply{r.desired}});
  } else {
    replies.push_back({from, ValueReply{exists ? values_[r.key] : r.expected}});
  }
  return true;
}

bool EngineModel::On(ConnectionId from, const GetRequest& r, Replies& replies) {
  replies.push_back({from, ValueReply{ValueOf(r.key)}});
  return true;
}

bool EngineModel::On(ConnectionId from, const AddRequest& r, Replies& replies) {
  auto sum = Sum(r.key, r.delta);
  if (!sum) return false;
  Put(r.key, std::to_string(*sum), replies);
  replies.push_back({from, NumberReply{*sum}});
  return true;
}

bool EngineModel::On(ConnectionId from, const CheckRequest& r, Replies& replies) {
  bool ready = Missing(r.keys).empty();
  replies.push_back({from, ready ? CheckReply::kReady : CheckReply::kNotReady});
  return true;
}

bool EngineModel::On(ConnectionId from, const WaitRequest& r, Replies& replies) {
  auto missing = Missing(r.keys);
  if (missing.empty()) replies.push_back({from, WaitReply::kStopWaiting});
  std::set<std::string> distinct(missing.begin(), missing.end());
  if (!missing.empty()) waits_.push_back({from, missing, distinct.size()});
  return true;
}

bool EngineModel::On(ConnectionId from, const DeleteKeyRequest& r, Replies& replies) {
  std::string old = ValueOf(r.key);
  size_t erased = values_.erase(r.key);
  if (erased > 0) Notify({NoticeReply::Change::kDeleted, r.key, old, ""}, replies);
  replies.push_back({from, NumberReply{static_cast<int64_t>(erased)}});
  return true;
}

bool EngineModel::On(ConnectionId from, const CancelWaitRequest&, Replies& replies) {
  CancelWaits(from);
  replies.push_back({from, WaitReply::kWaitCanceled});
  return true;
}

bool EngineModel::On(ConnectionId from, const PingRequest& r, Replies& replies) {
  replies.push_back({from, PingReply{r.nonce}});
  return true;
}

bool EngineModel::On(ConnectionId from, const GetNumKeysRequest&, Replies& replies) {
  replies.push_back({from, NumberReply{static_cast<int64_t>(values_.size())}});
  return true;
}

bool EngineModel::On(ConnectionId from, const ListKeysRequest&, Replies& replies) {
  KeysReply reply;
  for (const auto& [key, value] : values_) reply.keys.push_back(key);
  replies.push_back({from, reply});
  return true;
}

bool EngineModel::On(ConnectionId, const AppendRequest& r, Replies& replies) {
  Put(r.key, ValueOf(r.key) + r.value, replies);
  return true;
}

bool EngineModel::On(ConnectionId from, const MultiGetRequest& r, Replies& replies) {
  ValuesReply reply;
  for (const std::string& key : r.keys) reply.values.push_back(ValueOf(key));
  replies.push_back({from, reply});
  return true;
}

bool EngineModel::On(ConnectionId, const MultiSetRequest& r, Replies& replies) {
  for (const auto& [key, value] : r.entries) Put(key, value, replies);
  return true;
}

// One value wakes only the longest waiter.
bool EngineModel::On(ConnectionId, const QueuePushRequest& r, Replies& replies) {
  queues_[r.key].push_back(r.value);
  for (auto wait = waits_.begin(); wait != waits_.end(); ++wait) {
    if (wait->is_barrier || std::erase(wait->missing, r.key) == 0) continue;
    if (!wait->missing.empty()) return true;
    replies.push_back({wait->connection, WaitReply::kStopWaiting});
    waits_.erase(wait);
    return true;
  }
  return true;
}

bool EngineModel::On(ConnectionId from, const QueuePopRequest& r, Replies& replies) {
  auto& queue = queues_[r.key];
  PopReply reply{static_cast<int64_t>(queue.size()), std::nullopt};
  if (!queue.empty()) reply.value = queue.front();
  if (!queue.empty()) queue.pop_front();
  replies.push_back({from, reply});
  return true;
}

bool EngineModel::On(ConnectionId from, const QueueLenRequest& r, Replies& replies) {
  replies.push_back({from, NumberReply{static_cast<int64_t>(LengthOf(r.key))}});
  return true;
}

bool EngineModel::On(ConnectionId from, const BarrierRequest& r, Replies& replies) {
  auto count = Sum(r.key, 1);
  if (!count) return false;
  Assign(r.key, std::to_string(*count), replies);
  if (*count < r.world_size) {
    waits_.push_back({from, {r.key}, /*slots=*/1, /*is_barrier=*/true});
    return true;
  }
  Release(r.key, /*barriers=*/true, replies);
  replies.push_back({from, WaitReply::kStopWaiting});
  return true;
}

bool EngineModel::On(ConnectionId from, const WatchKeyRequest& r, Replies& replies) {
  watches_.emplace_back(r.key, from);
  replies.push_back({from, WatchReply::kRegistered});
  return true;
}

std::string EngineModel::ValueOf(const std::string& key) const {
  auto found = values_.find(key);
  return found == values_.end() ? std::string() : found->second;
}

size_t EngineModel::LengthOf(const std::string& queue) const {
  auto found = queues_.find(queue);
  return found == queues_.end() ? 0 : found->second.size();
}

// Wraps around on overflow.
std::optional<int64_t> EngineModel::Sum(const std::string& key, int64_t delta) const {
  if (!values_.contains(key)) return delta;
  try {
    auto number = static_cast<uint64_t>(std::stoll(ValueOf(key)));
    return static_cast<int64_t>(number + static_cast<uint64_t>(delta));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> EngineModel::Missing(std::vector<std::string> keys) const {
  std::erase_if(
      keys, [this](const std::string& key) { return values_.contains(key) || LengthOf(key) > 0; });
  return keys;
}

void EngineModel::Put(const std::string& key, const std::string& value, Replies& replies) {
  Assign(key, value, replies);
  Release(key, /*barriers=*/true, replies);
}

void EngineModel::Assign(const std::string& key, const std::string& value, Replies& replies) {
  using Change = NoticeReply::Change;
  NoticeReply notice{values_.contains(key) ? Change::kUpdated : Change::kCreated, key, ValueOf(key),
                     value};
  values_[key] = value;
  Release(key, /*barriers=*/false, replies);
  Notify(notice, replies);
}

void EngineModel::Notify(const NoticeReply& notice, Replies& replies) const {
  for (const auto& [key, watcher] : watches_) {
    if (key == notice.key) replies.push_back({watcher, notice});
  }
}

void EngineModel::Release(const std::string& key, bool barriers, Replies& replies) {
  for (Wait& wait : waits_) {
    if (wait.is_barrier != barriers) continue;
    if (std::erase(wait.missing, key) > 0 && wait.missing.empty()) {
      replies.push_back({wait.connection, WaitReply::kStopWaiting});
    }
  }
  std::erase_if(waits_, [](const Wait& wait) { return wait.missing.empty(); });
}

}  // namespace rankrun::store
