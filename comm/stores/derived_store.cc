#include "comm/stores/derived_store.h"

#include <algorithm>
#include <type_traits>

#include <rankrun/dist_error.h>

#include "comm/core/time_left.h"
#include "store/clients/describe.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using Keys = std::span<const std::string>;

// Longest wait in the program's class where an agent may publish a death.
constexpr milliseconds kSlice{100};

TimePoint Now() { return std::chrono::steady_clock::now(); }

// Returns the error of the exception that is being handled. `deadline` is that of
// the call.
Error Caught(TimePoint deadline) {
  try {
    throw;
  } catch (const DistStoreError& error) {
    return {Now() >= deadline ? ErrorCode::kTimeout : ErrorCode::kProtocol, error.what()};
  } catch (const DistTimeoutError& error) {
    return {Now() >= deadline ? ErrorCode::kTimeout : ErrorCode::kProtocol, error.what()};
  } catch (const DistNetworkError& error) {
    return {ErrorCode::kPeerLost, error.what()};
  } catch (const DistBackendError& error) {
    return {ErrorCode::kProtocol, error.what()};
  } catch (const DistError& error) {
    return {ErrorCode::kInvalid, error.what()};
  } catch (const std::exception& error) {
    return {ErrorCode::kProtocol, std::string("the program's store: ") + error.what()};
  } catch (...) {
    return {ErrorCode::kProtocol, "the program's store threw an exception of unknown type"};
  }
}

// Returns the result of `call`, or the error of its exception.
template <typename Call>
auto Guard(Call call, TimePoint deadline = TimePoint::max()) -> Result<std::invoke_result_t<Call>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (...) {
    return Caught(deadline);
  }
}

std::vector<std::string> ListOf(Keys keys) { return {keys.begin(), keys.end()}; }

// The longest time-outs of the library are a year, to which Now() can be added.
milliseconds Left(TimePoint deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Now()), milliseconds(0));
}

}  // namespace

Result<void> DerivedStore::Set(std::string_view key, std::string_view value) {
  return Guard([&] { store_->Set(key, value); });
}

Result<std::string> DerivedStore::Get(std::string_view key, milliseconds timeout) {
  std::string name(key);
  TimePoint deadline = store::DeadlineAfter(timeout);
  if (auto ok = Wait({&name, 1}, timeout); !ok) return std::move(ok).error();
  return Guard([&] { return store_->Get(key, Left(deadline)); }, deadline);
}

Result<int64_t> DerivedStore::Add(std::string_view key, int64_t delta) {
  return Guard([&] { return store_->Add(key, delta); });
}

Result<bool> DerivedStore::Check(Keys keys) {
  return Guard([&] { return store_->Check(ListOf(keys)); });
}

// Calls `wait` with a part of the time-out until it returns anything but kTimeout.
template <typename WaitCall>
auto DerivedStore::InSlices(const std::string& what, milliseconds timeout, WaitCall wait)
    -> Result<std::invoke_result_t<WaitCall, milliseconds>> {
  TimePoint began = Now();
  TimePoint deadline = store::DeadlineAfter(timeout);
  for (;;) {
    milliseconds left = Left(deadline);
    bool is_last = !deaths_.looks() || left <= kSlice;
    milliseconds slice = is_last ? left : kSlice;
    TimePoint end = Now() + slice;
    auto waited = Guard([&] { return wait(slice); }, end);
    if (waited || waited.error().code != ErrorCode::kTimeout) return waited;
    if (deaths_.has_death()) return deaths_.ErrorSince(began).In(what);
    if (is_last) return waited;
  }
}

Result<void> DerivedStore::Wait(Keys keys, milliseconds timeout) {
  std::string what = "wait for " + store::DescribeKeys(keys);
  auto waited =
      InSlices(what, timeout, [&](milliseconds slice) { store_->Wait(ListOf(keys), slice); });
  if (waited || waited.error().code != ErrorCode::kTimeout) return waited;
  return store::KeyTimeoutError(what, timeout);
}

Result<store::CompareSetResult> DerivedStore::CompareSet(std::string_view key,
                                                         std::string_view expected,
                                                         std::string_view desired) {
  return Guard([&] {
    auto result = store_->CompareSet(key, expected, desired);
    return store::CompareSetResult{.value = std::move(result.value), .swapped = result.swapped};
  });
}

Result<bool> DerivedStore::Delete(std::string_view key) {
  return Guard([&] { return store_->DeleteKey(key); });
}

Result<void> DerivedStore::Append(std::string_view key, std::string_view value) {
  return Guard([&] { store_->Append(key, value); });
}

Result<std::vector<std::string>> DerivedStore::MultiGet(Keys keys, milliseconds timeout) {
  TimePoint deadline = store::DeadlineAfter(timeout);
  if (auto ok = Wait(keys, timeout); !ok) return std::move(ok).error();
  return Guard([&] { return store_->MultiGet(ListOf(keys), Left(deadline)); }, deadline);
}

Result<void> DerivedStore::MultiSet(Keys keys, Keys values) {
  return Guard([&] { store_->MultiSet(ListOf(keys), ListOf(values)); });
}

Result<int64_t> DerivedStore::NumKeys() {
  return Guard([&] { return store_->NumKeys(); });
}

Result<std::vector<std::string>> DerivedStore::ListKeys() {
  return Guard([&] { return store_->ListKeys(); });
}

Result<void> DerivedStore::QueuePush(std::string_view key, std::string_view value) {
  return Guard([&] { store_->QueuePush(key, value); });
}

Result<std::string> DerivedStore::QueuePop(std::string_view key, milliseconds timeout) {
  std::string what = "pop from queue " + std::string(key);
  auto popped =
      InSlices(what, timeout, [&](milliseconds slice) { return store_->QueuePop(key, slice); });
  if (popped || popped.error().code != ErrorCode::kTimeout) return popped;
  return store::QueueTimeoutError(what, timeout);
}

Result<std::optional<std::string>> DerivedStore::TryQueuePop(std::string_view key) {
  return Guard([&] { return store_->TryQueuePop(key); });
}

Result<int64_t> DerivedStore::QueueLength(std::string_view key) {
  return Guard([&] { return store_->QueueLength(key); });
}

Result<std::unique_ptr<store::Store>> DerivedStore::CloneWith(milliseconds /*timeout*/,
                                                              milliseconds /*reply_timeout*/) {
  return std::unique_ptr<store::Store>(new DerivedStore(store_, deaths_));
}

}  // namespace rankrun::comm
