#include "store/clients/table_store.h"

#include <algorithm>

#include "store/clients/describe.h"
#include "store/engine/counter.h"

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

using Keys = std::span<const std::string>;

constexpr Duration kFirstSleep = 1ms;
// Minimum time that a wait gives to a busy source, even past its deadline.
constexpr milliseconds kGrace{1'000};

class SharedTableStore final : public TableStore {
 public:
  explicit SharedTableStore(std::shared_ptr<TableSource> source) : TableStore(std::move(source)) {}
};

}  // namespace

Result<void> TableStore::Set(std::string_view key, std::string_view value) {
  auto done = Commit({Change::Kind::kSet, std::string(key), std::string(value)});
  if (!done) return std::move(done).error().In("set key " + std::string(key));
  return done;
}

Result<std::string> TableStore::Get(std::string_view key, milliseconds timeout) {
  std::string name(key);
  auto values = MultiGet({&name, 1}, timeout);
  if (!values) return std::move(values).error();
  return std::move(values->front());
}

Result<int64_t> TableStore::Add(std::string_view key, int64_t delta) {
  std::string what = "add to key " + std::string(key);
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kChange); !begun) {
    return std::move(begun).error().In(what);
  }
  int64_t sum = delta;
  if (const std::string* text = source_->table().Find(key)) {
    auto number = ParseCounter(*text);
    if (!number) return Error{ErrorCode::kInvalid, what + ": its value is not a number"};
    sum = WrappingSum(*number, delta);
  }
  auto done =
      source_->Commit(session, {{Change::Kind::kSet, std::string(key), std::to_string(sum)}});
  if (!done) return std::move(done).error().In(what);
  return sum;
}

Result<bool> TableStore::Check(Keys keys) {
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kRead); !begun) {
    return std::move(begun).error().In("check " + DescribeKeys(keys));
  }
  const KeyTable& table = source_->table();
  return std::all_of(keys.begin(), keys.end(), [&table](const std::string& key) {
    return table.Has(key, LookupScope::kBoth);
  });
}

Result<void> TableStore::Wait(Keys keys, milliseconds timeout) {
  std::string what = "wait for " + DescribeKeys(keys);
  TimePoint deadline = DeadlineAfter(timeout);
  Session session(*source_);
  if (auto begun = BeginWait(session, Purpose::kRead, deadline); !begun) {
    return std::move(begun).error().In(what);
  }
  auto missing = Await(session, keys, LookupScope::kBoth, deadline);
  if (!missing) return std::move(missing).error().In(what);
  if (missing->empty()) return {};
  if (missing->size() == keys.size()) missing->clear();  // `what` names them
  return KeyTimeoutError(what, timeout, *missing);
}

Result<CompareSetResult> TableStore::CompareSet(std::string_view key, std::string_view expected,
                                                std::string_view desired) {
  std::string what = "compare and set key " + std::string(key);
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kChange); !begun) {
    return std::move(begun).error().In(what);
  }
  const std::string* current = source_->table().Find(key);
  bool matches = current == nullptr ? expected.empty() : *current == expected;
  if (!matches) {
    // For a missing key the result is `expected`, as over the wire.
    return CompareSetResult{current == nullptr ? std::string(expected) : *current, false};
  }
  auto done =
      source_->Commit(session, {{Change::Kind::kSet, std::string(key), std::string(desired)}});
  if (!done) return std::move(done).error().In(what);
  return CompareSetResult{std::string(desired), true};
}

Result<bool> TableStore::Delete(std::string_view key) {
  std::string what = "delete key " + std::string(key);
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kChange); !begun) {
    return std::move(begun).error().In(what);
  }
  if (source_->table().Find(key) == nullptr) return false;
  auto done = source_->Commit(session, {{Change::Kind::kDelete, std::string(key)}});
  if (!done) return std::move(done).error().In(what);
  return true;
}

Result<void> TableStore::Append(std::string_view key, std::string_view value) {
  auto done = Commit({Change::Kind::kAppend, std::string(key), std::string(value)});
  if (!done) return std::move(done).error().In("append to key " + std::string(key));
  return done;
}

Result<std::vector<std::string>> TableStore::MultiGet(Keys keys, milliseconds timeout) {
  std::string what = "get " + DescribeKeys(keys);
  TimePoint deadline = DeadlineAfter(timeout);
  Session session(*source_);
  if (auto begun = BeginWait(session, Purpose::kRead, deadline); !begun) {
    return std::move(begun).error().In(what);
  }
  // Retry, because one key may be deleted before the last one is set.
  for (;;) {
    std::vector<std::string> values;
    for (const std::string& key : keys) {
      const std::string* value = source_->table().Find(key);
      if (value == nullptr) break;
      values.push_back(*value);
    }
    if (values.size() == keys.size()) return values;
    auto missing = Await(session, keys, LookupScope::kKeys, deadline);
    if (!missing) return std::move(missing).error().In(what);
    if (missing->empty()) continue;
    if (missing->size() == keys.size()) missing->clear();  // `what` names them
    return KeyTimeoutError(what, timeout, *missing);
  }
}

Result<void> TableStore::MultiSet(Keys keys, Keys values) {
  std::string what = "set " + DescribeKeys(keys);
  if (keys.size() != values.size()) return UnequalLengthsError(keys, values);
  std::vector<Change> changes;
  changes.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    changes.push_back({Change::Kind::kSet, keys[i], values[i]});
  }
  Session session(*source_);
  auto done = Begin(session, Purpose::kChange);
  if (done) done = source_->Commit(session, std::move(changes));
  if (!done) return std::move(done).error().In(what);
  return done;
}

Result<int64_t> TableStore::NumKeys() {
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kRead); !begun) {
    return std::move(begun).error().In("count the keys");
  }
  return static_cast<int64_t>(source_->table().size());
}

Result<std::vector<std::string>> TableStore::ListKeys() {
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kRead); !begun) {
    return std::move(begun).error().In("list the keys");
  }
  return source_->table().Keys();
}

Result<void> TableStore::QueuePush(std::string_view key, std::string_view value) {
  auto done = Commit({Change::Kind::kPush, std::string(key), std::string(value)});
  if (!done) return std::move(done).error().In("push to queue " + std::string(key));
  return done;
}

Result<std::string> TableStore::QueuePop(std::string_view key, milliseconds timeout) {
  std::string name(key);
  std::string what = "pop from queue " + name;
  TimePoint deadline = DeadlineAfter(timeout);
  for (;;) {
    Session session(*source_);
    auto begun = BeginWait(session, Purpose::kChange, deadline);
    if (!begun) return std::move(begun).error().In(what);
    auto value = PopNow(session, name);
    if (!value) return std::move(value).error().In(what);
    if (*value) return **std::move(value);
    auto missing = Await(session, {&name, 1}, LookupScope::kQueues, deadline);
    if (!missing) return std::move(missing).error().In(what);
    if (missing->empty()) continue;  // another client may pop first, so wait again
    return QueueTimeoutError(what, timeout);
  }
}

Result<std::optional<std::string>> TableStore::TryQueuePop(std::string_view key) {
  Session session(*source_);
  auto begun = Begin(session, Purpose::kChange);
  if (!begun) return std::move(begun).error().In("pop from queue " + std::string(key));
  auto value = PopNow(session, std::string(key));
  if (!value) return std::move(value).error().In("pop from queue " + std::string(key));
  return value;
}

Result<int64_t> TableStore::QueueLength(std::string_view key) {
  Session session(*source_);
  if (auto begun = Begin(session, Purpose::kRead); !begun) {
    return std::move(begun).error().In("length of queue " + std::string(key));
  }
  return static_cast<int64_t>(source_->table().QueueLength(key));
}

Result<std::unique_ptr<Store>> TableStore::CloneWith(std::chrono::milliseconds,
                                                     std::chrono::milliseconds) {
  return std::unique_ptr<Store>(new SharedTableStore(source_));
}

Result<void> TableStore::Begin(Session& session, Purpose purpose) {
  return source_->Refresh(session, purpose, DeadlineAfter(source_->LockTimeout()));
}

Result<void> TableStore::BeginWait(Session& session, Purpose purpose, TimePoint deadline) {
  TimePoint grace = DeadlineAfter(std::min(kGrace, source_->LockTimeout()));
  return source_->Refresh(session, purpose, std::max(deadline, grace));
}

Result<void> TableStore::Commit(Change change) {
  Session session(*source_);
  auto done = Begin(session, Purpose::kChange);
  if (!done) return done;
  return source_->Commit(session, {std::move(change)});
}

Result<std::optional<std::string>> TableStore::PopNow(Session& session, const std::string& key) {
  const std::string* front = source_->table().QueueFront(key);
  if (front == nullptr) return std::optional<std::string>();
  std::string value = *front;
  auto done = source_->Commit(session, {{Change::Kind::kPop, key}});
  if (!done) return std::move(done).error();
  return std::optional(std::move(value));
}

// Waits until all keys exist. Returns the keys that are missing at the
// deadline; none is success. `session` holds the locks of a session refreshed
// for kRead, before and after.
Result<std::vector<std::string>> TableStore::Await(Session& session, Keys keys, LookupScope scope,
                                                   TimePoint deadline) {
  session.file.reset();  // otherwise no process could write while we sleep
  KeyTable::Watch watch(source_->table(), keys, scope);
  const DeathWatch& deaths = source_->deaths();
  TimePoint began = MonotonicClock().Now();
  Duration sleep = kFirstSleep;
  while (!watch.complete()) {
    if (deaths.has_death()) return deaths.ErrorSince(began);
    TimePoint now = MonotonicClock().Now();
    if (now >= deadline) return watch.Missing();
    sleep = std::min(sleep * 2, source_->LongestSleep());
    bool others_write = source_->LongestSleep() != Duration::max();
    TimePoint look = deaths.NextLook(deadline);
    TimePoint until = others_write ? std::min(look, now + sleep) : look;
    while (!watch.complete() && watch.completed().WaitUntil(source_->mutex(), until)) {
    }
    if (watch.complete() || !others_write) continue;
    if (auto seen = BeginWait(session, Purpose::kRead, deadline); !seen) {
      return std::move(seen).error();
    }
  }
  return std::vector<std::string>();
}

}  // namespace rankrun::store
