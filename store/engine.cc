#include "store/engine.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace rankrun::store {
namespace {

// What an entry takes besides its key and value, roughly: a node of the table
// with its share of buckets, and a node of a list with its slot.
constexpr size_t kEntryBytes = 128;
constexpr size_t kWaiterBytes = 64;

// As std::stoll, which PyTorch's server uses: blanks and a sign may come
// before, anything may follow.
std::optional<int64_t> ParseNumber(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;  // from_chars would take it
  }
  int64_t number = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

// Sums wrap around, as they do in PyTorch in practice.
int64_t WrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

Result<void> Engine::Apply(ConnectionId from, Request request, std::vector<Outgoing>& replies) {
  return std::visit([&](auto& one_kind) { return On(from, std::move(one_kind), replies); },
                    request);
}

void Engine::Disconnect(ConnectionId connection) {
  auto found = waits_.find(connection);
  if (found == waits_.end()) return;
  for (const Wait& wait : found->second) Withdraw(wait);
  waits_.erase(found);
}

void Engine::Clear() {
  waits_.clear();
  keys_.clear();
  bytes_ = 0;
  key_count_ = 0;
}

Result<void> Engine::On(ConnectionId, SetRequest request, std::vector<Outgoing>& replies) {
  return Put(std::move(request.key), std::move(request.value), replies);
}

Result<void> Engine::On(ConnectionId from, CompareSetRequest request,
                        std::vector<Outgoing>& replies) {
  const std::string* current = Find(request.key);
  bool matches = current == nullptr ? request.expected.empty() : *current == request.expected;
  if (!matches) {
    // A missing key is answered with `expected`: PyTorch's clients rely on it.
    std::string value = current == nullptr ? request.expected : *current;
    replies.push_back({from, ValueReply{std::move(value)}});
    return {};
  }
  std::string stored = request.desired;
  auto put = Put(std::move(request.key), std::move(request.desired), replies);
  if (put) replies.push_back({from, ValueReply{std::move(stored)}});
  return put;
}

Result<void> Engine::On(ConnectionId from, const GetRequest& request,
                        std::vector<Outgoing>& replies) {
  const std::string* value = Find(request.key);
  replies.push_back({from, ValueReply{value == nullptr ? std::string() : *value}});
  return {};
}

Result<void> Engine::On(ConnectionId from, AddRequest request, std::vector<Outgoing>& replies) {
  int64_t sum = request.delta;
  if (const std::string* text = Find(request.key)) {
    auto number = ParseNumber(*text);
    if (!number) {
      return Error{ErrorCode::kInvalid, "ADD to key " + request.key + ": its value is no number"};
    }
    sum = WrappingSum(*number, request.delta);
  }
  auto put = Put(std::move(request.key), std::to_string(sum), replies);
  if (put) replies.push_back({from, NumberReply{sum}});
  return put;
}

Result<void> Engine::On(ConnectionId from, CheckRequest request, std::vector<Outgoing>& replies) {
  bool ready = std::all_of(request.keys.begin(), request.keys.end(),
                           [this](const std::string& key) { return Find(key) != nullptr; });
  replies.push_back({from, ready ? CheckReply::kReady : CheckReply::kNotReady});
  return {};
}

Result<void> Engine::On(ConnectionId from, WaitRequest request, std::vector<Outgoing>& replies) {
  std::erase_if(request.keys, [this](const std::string& key) { return Find(key) != nullptr; });
  if (request.keys.empty()) {
    replies.push_back({from, WaitReply::kStopWaiting});
    return {};
  }
  size_t needed = 0;
  for (const std::string& key : request.keys) needed += key.size() + kEntryBytes + kWaiterBytes;
  if (auto fits = Reserve(needed); !fits) return fits;
  Register(from, std::move(request.keys));
  return {};
}

Result<void> Engine::On(ConnectionId from, const DeleteKeyRequest& request,
                        std::vector<Outgoing>& replies) {
  auto found = keys_.find(request.key);
  auto* value = found == keys_.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (value != nullptr) {
    bytes_ -= kEntryBytes + found->first.size() + value->size();
    key_count_ -= 1;
    keys_.erase(found);  // nobody waits for a key that exists
  }
  replies.push_back({from, NumberReply{value != nullptr ? 1 : 0}});
  return {};
}

Result<void> Engine::On(ConnectionId from, CancelWaitRequest, std::vector<Outgoing>& replies) {
  Disconnect(from);
  // Also when nothing was waited for: the client counts on exactly one.
  replies.push_back({from, WaitReply::kWaitCanceled});
  return {};
}

Result<void> Engine::On(ConnectionId from, PingRequest request, std::vector<Outgoing>& replies) {
  replies.push_back({from, PingReply{request.nonce}});
  return {};
}

const std::string* Engine::Find(const std::string& key) const {
  auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : std::get_if<std::string>(&found->second);
}

Result<void> Engine::Reserve(size_t more_bytes) const {
  if (more_bytes <= largest_bytes_ - bytes_) return {};
  return Error{ErrorCode::kSystem, "the store is full: it holds " + std::to_string(bytes_) +
                                       " of " + std::to_string(largest_bytes_) + " bytes and " +
                                       std::to_string(more_bytes) + " more are needed"};
}

Result<void> Engine::Put(std::string key, std::string value, std::vector<Outgoing>& replies) {
  auto found = keys_.find(key);
  bool is_new = found == keys_.end();
  std::string* old_value = is_new ? nullptr : std::get_if<std::string>(&found->second);
  size_t old_bytes = old_value != nullptr ? old_value->size() : 0;
  size_t new_bytes = value.size() + (is_new ? kEntryBytes + key.size() : 0);
  if (new_bytes > old_bytes) {
    if (auto fits = Reserve(new_bytes - old_bytes); !fits) return fits;
  }
  bytes_ = bytes_ - old_bytes + new_bytes;
  if (old_value != nullptr) {
    *old_value = std::move(value);
    return {};
  }
  key_count_ += 1;
  if (is_new) {
    keys_.emplace(std::move(key), std::move(value));
    return {};
  }
  Waiters waiters = std::move(std::get<Waiters>(found->second));
  found->second = std::move(value);
  Wake(waiters, replies);
  return {};
}

void Engine::Register(ConnectionId connection, std::vector<std::string> missing) {
  std::list<Wait>& waits = waits_[connection];
  Wait& wait = waits.emplace_back(Wait{connection, missing.size(), {}, {}});
  wait.self = std::prev(waits.end());
  wait.slots.reserve(missing.size());
  for (std::string& key : missing) {
    auto [entry, is_new] = keys_.try_emplace(std::move(key), Waiters());
    if (is_new) bytes_ += kEntryBytes + entry->first.size();
    bytes_ += kWaiterBytes;
    auto& waiters = std::get<Waiters>(entry->second);
    waiters.push_back({&wait, wait.slots.size()});
    wait.slots.push_back({&*entry, std::prev(waiters.end())});
  }
}

void Engine::Wake(const Waiters& waiters, std::vector<Outgoing>& replies) {
  bytes_ -= waiters.size() * kWaiterBytes;
  for (const Waiter& waiter : waiters) {
    Wait& wait = *waiter.wait;
    wait.slots[waiter.slot].key = nullptr;
    wait.missing -= 1;
    if (wait.missing > 0) continue;
    replies.push_back({wait.connection, WaitReply::kStopWaiting});
    auto of_connection = waits_.find(wait.connection);
    of_connection->second.erase(wait.self);
    if (of_connection->second.empty()) waits_.erase(of_connection);
  }
}

void Engine::Withdraw(const Wait& wait) {
  for (const Slot& slot : wait.slots) {
    if (slot.key == nullptr) continue;
    auto& waiters = std::get<Waiters>(slot.key->second);
    waiters.erase(slot.place);
    bytes_ -= kWaiterBytes;
    if (!waiters.empty()) continue;
    bytes_ -= kEntryBytes + slot.key->first.size();
    keys_.erase(keys_.find(slot.key->first));
  }
}

}  // namespace rankrun::store
