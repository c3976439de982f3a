#include "store/clients/tcp_store.h"

#include <algorithm>

#include "base/format.h"
#include "store/clients/describe.h"
#include "store/wire/wire.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// Pauses between attempts to pop from a queue that other clients empty.
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kMaxPause{50};

template <typename T>
std::span<char> BytesOf(T& value) {
  return {reinterpret_cast<char*>(&value), sizeof value};
}

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

Result<void> TcpStore::Set(std::string_view key, std::string_view value) {
  MutexLock lock(mutex_);
  auto sent = Send(SetRequest{WireKey(key), std::string(value)}, ReplyDeadline());
  if (!sent) return std::move(sent).error().In("set key " + std::string(key));
  return sent;
}

Result<std::string> TcpStore::Get(std::string_view key, milliseconds timeout) {
  MutexLock lock(mutex_);
  std::string name(key);
  std::string what = "get key " + name;
  auto missing = AwaitKeys({&name, 1}, timeout);
  if (!missing) return std::move(missing).error().In(what);
  if (!missing->empty()) return KeyTimeoutError(what, timeout);
  auto value = RequestValue(GetRequest{WireKey(key)});
  if (!value) return std::move(value).error().In(what);
  return value;
}

Result<std::string> TcpStore::GetNow(std::string_view key) {
  MutexLock lock(mutex_);
  auto value = RequestValue(GetRequest{WireKey(key)});
  if (!value) return std::move(value).error().In("get key " + std::string(key));
  return value;
}

Result<int64_t> TcpStore::Add(std::string_view key, int64_t delta) {
  MutexLock lock(mutex_);
  auto sum = RequestNumber(AddRequest{WireKey(key), delta});
  if (!sum) return std::move(sum).error().In("add to key " + std::string(key));
  return sum;
}

Result<CompareSetResult> TcpStore::CompareSet(std::string_view key, std::string_view expected,
                                              std::string_view desired) {
  MutexLock lock(mutex_);
  auto value =
      RequestValue(CompareSetRequest{WireKey(key), std::string(expected), std::string(desired)});
  if (!value) return std::move(value).error().In("compare and set key " + std::string(key));
  bool swapped = *value == desired;
  return CompareSetResult{std::move(*value), swapped};
}

Result<bool> TcpStore::Delete(std::string_view key) {
  MutexLock lock(mutex_);
  auto count = RequestNumber(DeleteKeyRequest{WireKey(key)});
  if (!count) return std::move(count).error().In("delete key " + std::string(key));
  return *count > 0;
}

Result<void> TcpStore::Append(std::string_view key, std::string_view value) {
  MutexLock lock(mutex_);
  auto sent = Send(AppendRequest{WireKey(key), std::string(value)}, ReplyDeadline());
  if (!sent) return std::move(sent).error().In("append to key " + std::string(key));
  return sent;
}

Result<void> TcpStore::MultiSet(std::span<const std::string> keys,
                                std::span<const std::string> values) {
  if (keys.size() != values.size()) return UnequalLengthsError(keys, values);
  MultiSetRequest request;
  for (size_t i = 0; i < keys.size(); ++i)
    request.entries.emplace_back(WireKey(keys[i]), values[i]);
  MutexLock lock(mutex_);
  auto sent = Send(request, ReplyDeadline());
  if (!sent) return std::move(sent).error().In("set " + DescribeKeys(keys));
  return sent;
}

Result<int64_t> TcpStore::NumKeys() {
  MutexLock lock(mutex_);
  auto count = RequestNumber(GetNumKeysRequest{});
  if (!count) return std::move(count).error().In("count the keys");
  return count;
}

Result<std::vector<std::string>> TcpStore::ListKeys() {
  MutexLock lock(mutex_);
  TimePoint deadline = ReplyDeadline();
  auto sent = Send(ListKeysRequest{}, deadline);
  if (!sent) return std::move(sent).error().In("list the keys");
  uint64_t count = 0;
  auto received = Receive(BytesOf(count), deadline);
  if (!received) return std::move(received).error().In("list the keys");
  auto names = ReceiveValues(count, deadline);
  if (!names) return std::move(names).error().In("list the keys");
  const std::string& prefix = options_.key_prefix;
  std::vector<std::string> keys;
  for (const std::string& name : *names) {
    if (name.starts_with(prefix)) keys.push_back(name.substr(prefix.size()));
  }
  return keys;
}

Result<void> TcpStore::QueuePush(std::string_view key, std::string_view value) {
  MutexLock lock(mutex_);
  auto sent = Send(QueuePushRequest{WireKey(key), std::string(value)}, ReplyDeadline());
  if (!sent) return std::move(sent).error().In("push to queue " + std::string(key));
  return sent;
}

Result<std::string> TcpStore::QueuePop(std::string_view key, milliseconds timeout) {
  MutexLock lock(mutex_);
  std::string name(key);
  std::string what = "pop from queue " + name;
  TimePoint began = Now();
  TimePoint deadline = DeadlineAfter(timeout);
  milliseconds pause{0};
  while (true) {
    auto left = std::chrono::ceil<milliseconds>(deadline - Now());
    auto missing = AwaitKeys({&name, 1}, left);
    if (!missing) return std::move(missing).error().In(what);
    auto value = missing->empty() ? RequestPop(key) : std::optional<std::string>();
    if (!value) return std::move(value).error().In(what);
    if (*value) return std::move(**value);
    if (!missing->empty() || Now() >= deadline) return QueueTimeoutError(what, timeout);
    if (options_.deaths.has_death()) return options_.deaths.ErrorSince(began).In(what);
    // Either another client popped first, or a key of the same name ends each
    // wait at once. Without a pause the second case would keep the server busy.
    options_.deaths.SleepUntil(std::min<TimePoint>(Now() + pause, deadline));
    pause = std::min(2 * pause + kFirstPause, kMaxPause);
  }
}

Result<std::optional<std::string>> TcpStore::TryQueuePop(std::string_view key) {
  MutexLock lock(mutex_);
  auto value = RequestPop(key);
  if (!value) return std::move(value).error().In("pop from queue " + std::string(key));
  return value;
}

Result<int64_t> TcpStore::QueueLength(std::string_view key) {
  MutexLock lock(mutex_);
  auto length = RequestNumber(QueueLenRequest{WireKey(key)});
  if (!length) return std::move(length).error().In("measure queue " + std::string(key));
  return length;
}

std::vector<std::string> TcpStore::WireKeys(std::span<const std::string> keys) const {
  std::vector<std::string> wire_keys;
  wire_keys.reserve(keys.size());
  for (const std::string& key : keys) wire_keys.push_back(WireKey(key));
  return wire_keys;
}

Result<int64_t> TcpStore::CountWorkers(int64_t more) {
  MutexLock lock(mutex_);
  auto count = RequestNumber(AddRequest{"init/", more});
  if (!count) return std::move(count).error().In("count the workers");
  return count;
}

Result<int64_t> TcpStore::RequestNumber(const Request& request) {
  TimePoint deadline = ReplyDeadline();
  if (auto sent = Send(request, deadline); !sent) return std::move(sent).error();
  int64_t number = 0;
  auto received = Receive(BytesOf(number), deadline);
  if (!received) return std::move(received).error();
  return number;
}

Result<std::string> TcpStore::RequestValue(const Request& request) {
  TimePoint deadline = ReplyDeadline();
  if (auto sent = Send(request, deadline); !sent) return std::move(sent).error();
  return ReceiveValue(deadline);
}

Result<std::optional<std::string>> TcpStore::RequestPop(std::string_view key) {
  auto length_before = RequestNumber(QueuePopRequest{WireKey(key)});
  if (!length_before) return std::move(length_before).error();
  if (*length_before == 0) return std::optional<std::string>();
  auto value = ReceiveValue(ReplyDeadline());
  if (!value) return std::move(value).error();
  return std::optional<std::string>(std::move(*value));
}

Result<std::string> TcpStore::ReceiveValue(TimePoint deadline) {
  uint64_t length = 0;
  auto received = Receive(BytesOf(length), deadline);
  // Receive in pieces, so that only arrived bytes take memory, whatever the
  // announced length.
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  std::string value;
  while (received && value.size() < length) {
    size_t start = value.size();
    value.resize(start + std::min(kPiece, length - start));
    received = Receive(std::span(value).subspan(start), deadline);
  }
  if (!received) return std::move(received).error();
  return value;
}

Result<std::vector<std::string>> TcpStore::ReceiveValues(uint64_t count, TimePoint deadline) {
  std::vector<std::string> values;
  for (uint64_t i = 0; i < count; ++i) {
    auto value = ReceiveValue(deadline);
    if (!value) return std::move(value).error();
    values.push_back(std::move(*value));
  }
  return values;
}

Result<void> TcpStore::Send(const Request& request, TimePoint deadline) {
  return SendBytes(EncodeRequest(request), deadline);
}

Result<void> TcpStore::SendBytes(std::string_view bytes, TimePoint deadline) {
  if (broken_) {
    return Error{ErrorCode::kPeerLost, "the connection broke earlier: " + *broken_};
  }
  news_ = options_.deaths.OnlyNews();
  auto sent = socket_.Send(bytes, deadline, news_);
  if (!sent) return Break(std::move(sent).error());
  return sent;
}

Result<void> TcpStore::Receive(std::span<char> bytes, TimePoint deadline) {
  auto received = socket_.Receive(bytes, deadline, news_);
  if (!received) return Break(std::move(received).error());
  return received;
}

// Marks the connection as broken. Data of this request still in flight would be
// taken for the reply to the next one, so there must be no next request.
Error TcpStore::Break(Error error) {
  if (error.code == ErrorCode::kTimeout) {
    error.code = ErrorCode::kPeerLost;
    error.message = "no reply from the store at " + socket_.peer().ToString() + " within " +
                    FormatSeconds(options_.reply_timeout);
    broken_ = error.message;
    return error;
  }
  const bool is_closed = error.code == ErrorCode::kPeerLost && !options_.deaths.has_death();
  const std::string why = is_closed && options_.asks_why ? WhyRefused() : "";
  if (!why.empty())
    error.message = "the store has closed the connection, because it refused " + why;
  broken_ = error.message;
  return error;
}

TimePoint TcpStore::ReplyDeadline() const { return DeadlineAfter(options_.reply_timeout); }

}  // namespace rankrun::store
