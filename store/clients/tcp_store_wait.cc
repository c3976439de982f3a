#include <algorithm>

#include "base/interruptible_call.h"
#include "store/clients/describe.h"
#include "store/clients/tcp_store.h"
#include "store/engine/counter.h"
#include "store/wire/wire.h"

// The part of TcpStore that checks and waits for keys and at barriers.
namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// Number of CHECKs that one round trip sends to find the missing keys.
constexpr size_t kProbes = 64;

// Limit for cancelling a wait after a death.
constexpr milliseconds kCancelTimeout{100};
constexpr milliseconds kInterruptedCancelTimeout{1000};  // the server is well, perhaps busy

TimePoint Now() { return MonotonicClock().Now(); }

// Returns the error for the keys of one call that are still missing.
Error MissingKeysError(const std::string& what, milliseconds timeout,
                       std::span<const std::string> keys, std::vector<std::string> missing) {
  if (missing.size() == keys.size()) missing.clear();  // `what` names them
  return KeyTimeoutError(what, timeout, missing, keys.size() > kProbes);
}

}  // namespace

// Receives a one-byte reply: an enum whose last allowed value is `largest`.
template <typename Answer>
Result<Answer> TcpStore::ReceiveByte(Answer largest, TimePoint deadline) {
  uint8_t byte = 0;
  auto received = Receive({reinterpret_cast<char*>(&byte), 1}, deadline);
  if (!received) return std::move(received).error();
  if (byte > static_cast<uint8_t>(largest)) {
    return Break({ErrorCode::kProtocol, "the server answered with a byte " + std::to_string(byte) +
                                            ", which is not a valid reply here"});
  }
  return static_cast<Answer>(byte);
}

Result<bool> TcpStore::Check(std::span<const std::string> keys) {
  MutexLock lock(mutex_);
  TimePoint deadline = ReplyDeadline();
  auto sent = Send(CheckRequest{WireKeys(keys)}, deadline);
  if (!sent) return std::move(sent).error().In("check " + DescribeKeys(keys));
  auto reply = ReceiveByte(CheckReply::kNotReady, deadline);
  if (!reply) return std::move(reply).error().In("check " + DescribeKeys(keys));
  return *reply == CheckReply::kReady;
}

Result<void> TcpStore::Wait(std::span<const std::string> keys, milliseconds timeout) {
  MutexLock lock(mutex_);
  auto missing = AwaitKeys(keys, timeout);
  if (!missing) return std::move(missing).error().In("wait for " + DescribeKeys(keys));
  if (missing->empty()) return {};
  return MissingKeysError("wait for " + DescribeKeys(keys), timeout, keys, std::move(*missing));
}

Result<std::vector<std::string>> TcpStore::MultiGet(std::span<const std::string> keys,
                                                    milliseconds timeout) {
  MutexLock lock(mutex_);
  std::string what = "get " + DescribeKeys(keys);
  auto missing = AwaitKeys(keys, timeout);
  if (!missing) return std::move(missing).error().In(what);
  if (!missing->empty()) return MissingKeysError(what, timeout, keys, std::move(*missing));
  TimePoint deadline = ReplyDeadline();
  auto sent = Send(MultiGetRequest{WireKeys(keys)}, deadline);
  if (!sent) return std::move(sent).error().In(what);
  auto values = ReceiveValues(keys.size(), deadline);
  if (!values) return std::move(values).error().In(what);
  return values;
}

Result<void> TcpStore::Barrier(std::string_view key, int64_t world_size, milliseconds timeout) {
  if (auto ok = CheckBarrierSize(key, world_size); !ok) return ok;
  MutexLock lock(mutex_);
  auto met = AwaitRelease(BarrierRequest{WireKey(key), world_size}, timeout);
  if (!met) return std::move(met).error().In(DescribeBarrier(key));
  if (*met) return {};
  auto count = RequestValue(GetRequest{WireKey(key)});
  if (!count) return std::move(count).error().In(DescribeBarrier(key));
  int64_t arrived = ParseCounter(*count).value_or(0);
  if (arrived >= world_size) return {};
  return BarrierTimeoutError(key, arrived, world_size, timeout);
}

// Waits for `keys`. Returns those missing at the time-out; none is success.
// With more than kProbes keys the list may be incomplete.
Result<std::vector<std::string>> TcpStore::AwaitKeys(std::span<const std::string> keys,
                                                     milliseconds timeout) {
  auto exist = AwaitRelease(WaitRequest{WireKeys(keys)}, timeout);
  if (!exist) return std::move(exist).error();
  if (*exist) return std::vector<std::string>();
  return FindMissing(keys, ReplyDeadline());
}

// Sends a WAIT or BARRIER and cancels it at the time-out. Returns whether the
// server released it before.
Result<bool> TcpStore::AwaitRelease(const Request& request, milliseconds timeout) {
  TimePoint deadline = DeadlineAfter(timeout);
  auto sent = Send(request, ReplyDeadline());
  if (!sent) return std::move(sent).error();
  auto readable = socket_.WaitReadable(deadline, options_.deaths);
  if (!readable && readable.error().code == ErrorCode::kCancelled) {
    auto released = EndWait(std::move(readable).error());
    if (!released) return std::move(released).error();
    return true;
  }
  if (!readable) return Break(std::move(readable).error());
  if (!*readable) return CancelWait(ReplyDeadline());
  auto reply = ReceiveByte(WaitReply::kStopWaiting, ReplyDeadline());
  if (!reply) return std::move(reply).error();
  return true;
}

// Ends a wait after a death or an interrupt. A release counts as success if the server confirms
// it at once. The server may be lost, too.
Result<void> TcpStore::EndWait(Error death) {
  bool is_interrupted = InterruptibleCall::WasInterrupted();
  auto released = CancelWait(Now() + (is_interrupted ? kInterruptedCancelTimeout : kCancelTimeout));
  if (!released) return Break(std::move(death));
  if (!*released) return death;
  return {};
}

// Cancels a WAIT or BARRIER. Returns whether the server released it before it
// received the CANCEL_WAIT. In that case the reply of WAIT arrives first, then
// the reply of CANCEL_WAIT.
Result<bool> TcpStore::CancelWait(TimePoint deadline) {
  if (auto sent = Send(CancelWaitRequest{}, deadline); !sent) return std::move(sent).error();
  auto first = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!first) return std::move(first).error();
  if (*first == WaitReply::kWaitCanceled) return false;
  auto second = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!second) return std::move(second).error();
  if (*second == WaitReply::kWaitCanceled) return true;
  return Break({ErrorCode::kProtocol, "the server answered one WAIT twice"});
}

// Returns which of `keys` are missing after a WAIT timed out. For a single key
// the failed WAIT suffices. Many keys are checked in slices, then the first
// incomplete slices are divided further, so any number of keys needs few round
// trips.
Result<std::vector<std::string>> TcpStore::FindMissing(std::span<const std::string> keys,
                                                       TimePoint deadline) {
  std::vector<std::string> all(keys.begin(), keys.end());
  std::vector<std::string> suspects = all;
  while (suspects.size() > 1) {
    size_t slice_size = (suspects.size() + kProbes - 1) / kProbes;
    auto missing = FindMissingSlices(suspects, slice_size, deadline);
    if (!missing) return missing;
    if (missing->empty() && suspects.size() < all.size()) {
      suspects = all;  // these exist now; others may still be missing
      continue;
    }
    if (missing->empty() || slice_size == 1) return missing;
    suspects = std::move(*missing);
  }
  return suspects;
}

// Returns the keys of incomplete slices: at most kProbes keys, or those of one
// slice, so that few rounds remain.
Result<std::vector<std::string>> TcpStore::FindMissingSlices(std::span<const std::string> keys,
                                                             size_t slice_size,
                                                             TimePoint deadline) {
  std::string probes;
  std::vector<std::span<const std::string>> slices;
  for (; !keys.empty(); keys = keys.subspan(slices.back().size())) {
    slices.push_back(keys.first(std::min(slice_size, keys.size())));
    probes += EncodeRequest(CheckRequest{WireKeys(slices.back())});
  }
  if (auto sent = SendBytes(probes, deadline); !sent) return std::move(sent).error();
  std::vector<std::string> missing;
  for (std::span<const std::string> slice : slices) {
    auto reply = ReceiveByte(CheckReply::kNotReady, deadline);
    if (!reply) return std::move(reply).error();
    bool fits = missing.size() + slice.size() <= std::max(kProbes, slice_size);
    if (*reply == CheckReply::kReady || !fits) continue;
    missing.insert(missing.end(), slice.begin(), slice.end());
  }
  return missing;
}

}  // namespace rankrun::store
