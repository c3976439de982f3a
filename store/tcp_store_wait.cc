#include <algorithm>

#include "store/describe.h"
#include "store/tcp_store.h"
#include "store/wire.h"

// The part of TcpStore that asks whether keys are there.
namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

// How many CHECKs go out at once to find the missing keys.
constexpr size_t kProbes = 64;

constexpr milliseconds kFarewell{100};

TimePoint Now() { return MonotonicClock().Now(); }

// Of the keys of one call, those that did not come.
Error NotCome(const std::string& what, milliseconds timeout, std::span<const std::string> keys,
              std::vector<std::string> missing) {
  if (missing.size() == keys.size()) missing.clear();  // `what` names them
  return NotSetInTime(what, timeout, missing, keys.size() > kProbes);
}

}  // namespace

// A one-byte reply: an enum whose last allowed value is `largest`.
template <typename Answer>
Result<Answer> TcpStore::ReceiveByte(Answer largest, TimePoint deadline) {
  uint8_t byte = 0;
  auto received = Receive({reinterpret_cast<char*>(&byte), 1}, deadline);
  if (!received) return std::move(received).error();
  if (byte > static_cast<uint8_t>(largest)) {
    return Break({ErrorCode::kProtocol, "the server answered with a byte " + std::to_string(byte) +
                                            ", which means nothing here"});
  }
  return static_cast<Answer>(byte);
}

Result<bool> TcpStore::Check(std::span<const std::string> keys) {
  std::lock_guard lock(mutex_);
  const TimePoint deadline = ReplyDeadline();
  auto sent = Send(CheckRequest{WireKeys(keys)}, deadline);
  if (!sent) return std::move(sent).error().In("check " + DescribeKeys(keys));
  auto reply = ReceiveByte(CheckReply::kNotReady, deadline);
  if (!reply) return std::move(reply).error().In("check " + DescribeKeys(keys));
  return *reply == CheckReply::kReady;
}

Result<void> TcpStore::Wait(std::span<const std::string> keys, milliseconds timeout) {
  std::lock_guard lock(mutex_);
  auto missing = AwaitKeys(keys, timeout);
  if (!missing) return std::move(missing).error().In("wait for " + DescribeKeys(keys));
  if (missing->empty()) return {};
  return NotCome("wait for " + DescribeKeys(keys), timeout, keys, std::move(*missing));
}

Result<std::vector<std::string>> TcpStore::MultiGet(std::span<const std::string> keys,
                                                    milliseconds timeout) {
  std::lock_guard lock(mutex_);
  const std::string what = "get " + DescribeKeys(keys);
  auto missing = AwaitKeys(keys, timeout);
  if (!missing) return std::move(missing).error().In(what);
  if (!missing->empty()) return NotCome(what, timeout, keys, std::move(*missing));
  const TimePoint deadline = ReplyDeadline();
  auto sent = Send(MultiGetRequest{WireKeys(keys)}, deadline);
  if (!sent) return std::move(sent).error().In(what);
  auto values = ReceiveValues(keys.size(), deadline);
  if (!values) return std::move(values).error().In(what);
  return values;
}

// The keys that did not come in time: none is success. Of more than kProbes
// keys perhaps not all.
Result<std::vector<std::string>> TcpStore::AwaitKeys(std::span<const std::string> keys,
                                                     milliseconds timeout) {
  const TimePoint deadline = DeadlineAfter(timeout);
  auto sent = Send(WaitRequest{WireKeys(keys)}, ReplyDeadline());
  if (!sent) return std::move(sent).error();
  auto readable = socket_.WaitReadable(deadline, options_.deaths);
  if (!readable && readable.error().code == ErrorCode::kCancelled) {
    return EndWait(std::move(readable).error());
  }
  if (!readable) return Break(std::move(readable).error());
  const TimePoint reply_deadline = ReplyDeadline();
  if (*readable) {
    auto reply = ReceiveByte(WaitReply::kStopWaiting, reply_deadline);
    if (!reply) return std::move(reply).error();
    return std::vector<std::string>();
  }
  auto came = CancelWait(reply_deadline);
  if (!came) return std::move(came).error();
  if (*came) return std::vector<std::string>();
  return FindMissing(keys, reply_deadline);
}

// After a death. Keys that have come count all the same, as far as the server
// says so at once: it may be lost, too.
Result<std::vector<std::string>> TcpStore::EndWait(Error death) {
  auto came = CancelWait(Now() + kFarewell);
  if (!came) return Break(std::move(death));
  if (!*came) return death;
  return std::vector<std::string>();
}

// Takes a WAIT back. The keys may come before the server knows that; it has
// then sent the reply of WAIT, and that of CANCEL_WAIT comes after it.
Result<bool> TcpStore::CancelWait(TimePoint deadline) {
  if (auto sent = Send(CancelWaitRequest{}, deadline); !sent) return std::move(sent).error();
  auto first = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!first) return std::move(first).error();
  if (*first == WaitReply::kWaitCanceled) return false;
  auto second = ReceiveByte(WaitReply::kWaitCanceled, deadline);
  if (!second) return std::move(second).error();
  if (*second == WaitReply::kWaitCanceled) return true;
  return Break({ErrorCode::kProtocol, "the server has ended one wait twice"});
}

// Which of `keys` are missing, after a WAIT for them in vain. One CHECK tells it
// for one key; many keys are asked for in slices, and the first slices that
// miss some are looked at again: a few round trips for any number of keys.
Result<std::vector<std::string>> TcpStore::FindMissing(std::span<const std::string> keys,
                                                       TimePoint deadline) {
  const std::vector<std::string> all(keys.begin(), keys.end());
  std::vector<std::string> suspects = all;
  while (suspects.size() > 1) {
    const size_t slice_size = (suspects.size() + kProbes - 1) / kProbes;
    auto missing = FindMissingSlices(suspects, slice_size, deadline);
    if (!missing) return missing;
    if (missing->empty() && suspects.size() < all.size()) {
      suspects = all;  // these have come meanwhile; others may not have
      continue;
    }
    if (missing->empty() || slice_size == 1) return missing;
    suspects = std::move(*missing);
  }
  return suspects;
}

// The keys of those slices that are not complete; of the first ones only, if
// one more turn could not tell all of them apart.
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
    const bool fits = missing.size() + slice.size() <= std::max(kProbes, slice_size);
    if (*reply == CheckReply::kReady || !fits) continue;
    missing.insert(missing.end(), slice.begin(), slice.end());
  }
  return missing;
}

}  // namespace rankrun::store
