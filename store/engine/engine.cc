#include "store/engine/engine.h"

#include <algorithm>

#include "base/printable.h"
#include "store/engine/counter.h"
#include "store/engine/engine_sizes.h"

namespace rankrun::store {
namespace {

// Largest reply to MULTI_GET if it is larger than all stored data, because the
// request names keys more than once.
constexpr size_t kRepeatedBytes = size_t{16} << 20;

constexpr size_t kKeyWidth = 64;  // of a key in an error text, in characters

}  // namespace

Result<void> Engine::Apply(ConnectionId from, Request&& request, Replies& replies) {
  return std::visit([&](auto& one_kind) { return On(from, std::move(one_kind), replies); },
                    request);
}

Result<void> Engine::On(ConnectionId, SetRequest&& request, Replies& replies) {
  auto place = names_.Find(request.key);
  return PutAt(place, std::move(request.key), std::move(request.value), replies);
}

Result<void> Engine::On(ConnectionId from, CompareSetRequest&& request, Replies& replies) {
  auto place = names_.Find(request.key);
  const std::string* current = ValueAt(place);
  bool matches = current == nullptr ? request.expected.empty() : *current == request.expected;
  if (!matches) {
    // For a missing key the reply is `expected`, because PyTorch's clients rely
    // on it.
    std::string value = current == nullptr ? request.expected : *current;
    Answer(from, ValueReply{std::move(value)}, replies);
    return {};
  }
  auto put = PutAt(place, std::move(request.key), std::string(request.desired), replies);
  if (!put) return put;
  Answer(from, ValueReply{std::move(request.desired)}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, const GetRequest& request, Replies& replies) {
  const std::string* value = Find(request.key);
  Answer(from, ValueReply{value == nullptr ? std::string() : *value}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, AddRequest&& request, Replies& replies) {
  auto place = names_.Find(request.key);
  auto sum = NumberAfter("ADD", request.key, ValueAt(place), request.delta);
  if (!sum) return std::move(sum).error();
  auto put = PutAt(place, std::move(request.key), std::to_string(*sum), replies);
  if (!put) return put;
  Answer(from, NumberReply{*sum}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, const CheckRequest& request, Replies& replies) {
  bool ready = std::all_of(request.keys.begin(), request.keys.end(),
                           [this](const std::string& key) { return Exists(key); });
  Answer(from, ready ? CheckReply::kReady : CheckReply::kNotReady, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, WaitRequest&& request, Replies& replies) {
  std::erase_if(request.keys, [this](const std::string& key) { return Exists(key); });
  if (request.keys.empty()) {
    Answer(from, WaitReply::kStopWaiting, replies);
    return {};
  }
  size_t needed = kWaitBytes;
  for (const std::string& key : request.keys) {
    needed += GrowthOf(key, 0) + kExtrasBytes + kWaiterBytes;
  }
  if (auto fits = Reserve(needed); !fits) return fits;
  Wait& wait = AddWait(from, /*is_barrier=*/false);
  for (std::string& key : request.keys) Register(wait, std::move(key));
  wait.slots.shrink_to_fit();
  return {};
}

Result<void> Engine::On(ConnectionId from, const DeleteKeyRequest& request, Replies& replies) {
  auto found = names_.Find(request.key);
  bool exists = ValueAt(found) != nullptr;
  if (auto fits = CheckNoticeSize(NoticeBytes(found, 0)); !fits) return fits;
  if (exists) {
    std::string old = std::move(*found->value);
    bytes_ -= old.size();
    key_count_ -= 1;
    found->value.reset();
    Notify(*found, NoticeReply::Change::kDeleted, old, replies);
    EraseIfUnused(*found);
  }
  Answer(from, NumberReply{exists ? 1 : 0}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, CancelWaitRequest&&, Replies& replies) {
  CancelWaits(from);
  // Reply even if there was no wait, because the client expects exactly one
  // reply.
  Answer(from, WaitReply::kWaitCanceled, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, PingRequest&& request, Replies& replies) {
  Answer(from, PingReply{request.nonce}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, GetNumKeysRequest&&, Replies& replies) {
  Answer(from, NumberReply{static_cast<int64_t>(key_count_)}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, ListKeysRequest&&, Replies& replies) {
  size_t reply_bytes = 0;
  names_.ForEach([&](const engine::Name& name) {
    if (name.value) reply_bytes += sizeof(uint64_t) + name.key.size();
  });
  if (auto fits = CheckReplySize(reply_bytes); !fits) return fits;
  KeysReply reply;
  names_.ForEach([&](const engine::Name& name) {
    if (name.value) reply.keys.push_back(name.key);
  });
  Answer(from, std::move(reply), replies);
  return {};
}

Result<void> Engine::On(ConnectionId, AppendRequest&& request, Replies& replies) {
  auto found = names_.Find(request.key);
  if (ValueAt(found) == nullptr) {
    return PutAt(found, std::move(request.key), std::move(request.value), replies);
  }
  std::string& value = *found->value;
  if (auto fits = CheckReplySize(value.size() + request.value.size()); !fits) return fits;
  if (auto fits = Reserve(request.value.size()); !fits) return fits;
  auto fits_notices = CheckNoticeSize(NoticeBytes(found, value.size() + request.value.size()));
  if (!fits_notices) return fits_notices;
  bool is_watched = found->extras != nullptr && !found->extras->watchers.empty();
  std::string old = is_watched ? value : std::string();
  bytes_ += request.value.size();
  value += request.value;
  Notify(*found, NoticeReply::Change::kUpdated, old, replies);
  WakeBarriers(*found, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, const MultiGetRequest& request, Replies& replies) {
  size_t reply_bytes = 0;
  for (const std::string& key : request.keys) {
    const std::string* value = Find(key);
    reply_bytes += sizeof(uint64_t) + (value == nullptr ? 0 : value->size());
  }
  if (auto fits = CheckReplySize(reply_bytes); !fits) return fits;
  // A short request that names a large key again and again takes much memory.
  if (reply_bytes > std::max(bytes_, kRepeatedBytes)) {
    return Error{ErrorCode::kSystem, "a reply of " + std::to_string(reply_bytes) +
                                         " bytes is larger than all keys and values, " +
                                         std::to_string(bytes_) + " bytes"};
  }
  ValuesReply reply;
  reply.values.reserve(request.keys.size());
  for (const std::string& key : request.keys) {
    const std::string* value = Find(key);
    reply.values.push_back(value == nullptr ? std::string() : *value);
  }
  Answer(from, std::move(reply), replies);
  return {};
}

Result<void> Engine::On(ConnectionId, MultiSetRequest&& request, Replies& replies) {
  // Reserves the most that the loop below can need, so that it sets all keys or
  // none.
  size_t needed = 0;
  size_t notice_bytes = 0;
  for (const auto& [key, value] : request.entries) {
    auto place = names_.Find(key);
    needed += GrowthAt(place, key.size(), value.size());
    // Counts the value twice, because a later entry with the same key reports it
    // again, as the old value.
    notice_bytes += NoticeBytes(place, 2 * value.size());
    // Check in each iteration, because the sum of many entries could overflow.
    if (auto fits = CheckNoticeSize(notice_bytes); !fits) return fits;
  }
  if (auto fits = Reserve(needed); !fits) return fits;
  for (auto& entry : request.entries) Put(std::move(entry.first), std::move(entry.second), replies);
  return {};
}

Result<void> Engine::On(ConnectionId, QueuePushRequest&& request, Replies& replies) {
  size_t item_bytes = kItemBytes + request.value.size();
  auto fits = Reserve(GrowthOf(request.key, 0) + kExtrasBytes + item_bytes);
  if (!fits) return fits;
  Extras& extras = ExtrasOf(Touch(std::move(request.key)));
  if (extras.queue.empty()) queue_count_ += 1;
  extras.queue.push_back(std::move(request.value));
  bytes_ += item_bytes;
  if (extras.waiters.empty()) return {};
  // Wake only one waiter, because the request adds only one value.
  Waiter first = extras.waiters.front();
  extras.waiters.pop_front();
  MarkNameExists(first, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, const QueuePopRequest& request, Replies& replies) {
  auto found = names_.Find(request.key);
  if (LengthOf(found) == 0) {
    Answer(from, PopReply{0, std::nullopt}, replies);
    return {};
  }
  auto& queue = found->extras->queue;
  bytes_ -= kItemBytes + queue.front().size();
  Answer(from, PopReply{static_cast<int64_t>(queue.size()), std::move(queue.front())}, replies);
  queue.pop_front();
  if (queue.empty()) queue_count_ -= 1;
  EraseIfUnused(*found);
  return {};
}

Result<void> Engine::On(ConnectionId from, const QueueLenRequest& request, Replies& replies) {
  size_t length = LengthOf(names_.Find(request.key));
  Answer(from, NumberReply{static_cast<int64_t>(length)}, replies);
  return {};
}

Result<void> Engine::On(ConnectionId from, BarrierRequest&& request, Replies& replies) {
  auto count = NumberAfter("BARRIER", request.key, Find(request.key), 1);
  if (!count) return std::move(count).error();
  std::string text = std::to_string(*count);
  auto fits =
      Reserve(GrowthOf(request.key, text.size()) + kExtrasBytes + kWaitBytes + kWaiterBytes);
  if (!fits) return fits;
  auto fits_notices = CheckNoticeSize(NoticeBytes(names_.Find(request.key), text.size()));
  if (!fits_notices) return fits_notices;
  if (*count >= request.world_size) {
    Put(std::move(request.key), std::move(text), replies);
    Answer(from, WaitReply::kStopWaiting, replies);
    return {};
  }
  Name& name = Touch(request.key);
  Assign(name, std::move(text), replies);  // the key exists now; the barrier is not complete
  Register(AddWait(from, /*is_barrier=*/true), std::move(request.key));
  return {};
}

Result<void> Engine::On(ConnectionId from, WatchKeyRequest&& request, Replies& replies) {
  auto fits = Reserve(GrowthOf(request.key, 0) + kExtrasBytes + kWaiterBytes);
  if (!fits) return fits;
  Name& name = Touch(std::move(request.key));
  std::list<ConnectionId>& watchers = ExtrasOf(name).watchers;
  watches_[from].push_back({&name, watchers.insert(watchers.end(), from)});
  bytes_ += kWaiterBytes;
  Answer(from, WatchReply::kRegistered, replies);
  return {};
}

// Returns the number `text`, the value at `key`, plus `delta`. A missing value
// counts as 0.
Result<int64_t> Engine::NumberAfter(std::string_view operation, const std::string& key,
                                    const std::string* text, int64_t delta) const {
  if (text == nullptr) return delta;
  auto number = ParseCounter(*text);
  if (number) return WrappingSum(*number, delta);
  return Error{ErrorCode::kInvalid, std::string(operation) + " to key " +
                                        EscapedAndCut(key, kKeyWidth) +
                                        ": its value is not a number"};
}

}  // namespace rankrun::store
