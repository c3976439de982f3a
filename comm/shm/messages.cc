#include "comm/shm/messages.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/pause.h"
#include "comm/shm/futex.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSpins = 300;  // each reads all channels
constexpr int kYields = 200;
constexpr milliseconds kSlice{4};
constexpr microseconds kShortSlice{200};  // if there are no fences: a writer may miss a sleeper
constexpr milliseconds kCheckInterval{4};

TimePoint Now() { return MonotonicClock().Now(); }

// Returns the error with which transfers end. It is never kTimeout, which would
// mean that they continue.
Error EndOfTransfers(Error error) {
  if (error.code == ErrorCode::kTimeout) error.code = ErrorCode::kCancelled;
  return error;
}

}  // namespace

Error DamageOf(const std::string& peer) {
  return Error{ErrorCode::kSystem, "the memory for messages shared with " + peer +
                                       " is damaged: its counters cannot be right"};
}

std::string TagText(uint64_t tag) { return " (" + TagInWords(tag) + ")"; }

std::string MessageText(const MessageHeader& header) {
  return std::to_string(header.bytes) + " bytes of " +
         rankrun::NameOf(static_cast<DType>(header.dtype)) + TagText(header.tag);
}

std::string WantedText(const MessageHeader& header, size_t bytes, DType dtype) {
  if (header.dtype == static_cast<uint64_t>(dtype)) return std::to_string(bytes);
  return std::to_string(bytes) + " bytes of " + rankrun::NameOf(dtype);
}

class Messages::SendTransfer final : public Transfer {
 public:
  SendTransfer(Messages& messages, ConstBlock data, int destination, const Envelope& envelope)
      : messages_(messages),
        sending_(data, destination, envelope),
        info_{.transfer = sending_,
              .peer = destination,
              .send = true,
              .began = Now(),
              .next_check = Now() + kCheckInterval} {}
  ~SendTransfer() override { messages_.Drop(info_); }
  bool Test() override { return messages_.Test(info_); }
  Result<void> Wait(milliseconds timeout) override { return messages_.Wait(info_, timeout); }
  int source() const override { return -1; }
  PendingSend& sending() { return sending_; }

 private:
  Messages& messages_;
  PendingSend sending_;
  TransferInfo info_;
};

class Messages::RecvTransfer final : public Transfer {
 public:
  RecvTransfer(Messages& messages, Block data, std::optional<int> source, const Envelope& envelope)
      : messages_(messages),
        receiving_(data, source, envelope),
        info_{.transfer = receiving_,
              .peer = source,
              .send = false,
              .began = Now(),
              .next_check = Now() + kCheckInterval} {}
  ~RecvTransfer() override { messages_.Drop(info_); }
  bool Test() override { return messages_.Test(info_); }
  Result<void> Wait(milliseconds timeout) override { return messages_.Wait(info_, timeout); }
  int source() const override { return receiving_.source; }
  std::optional<UnexpectedEnvelope> FirstUnexpected() override {
    MutexLock lock(messages_.mutex_);
    return messages_.inbox_.FirstUnexpected(receiving_.wanted_source);
  }
  PendingRecv& receiving() { return receiving_; }

 private:
  Messages& messages_;
  PendingRecv receiving_;
  TransferInfo info_;
};

Messages::Messages(const Segment& segment, DeathWatch deaths)
    : segment_(segment),
      layout_{.world_size = segment.world_size()},
      waiter_(segment, deaths),
      inbox_([this](int rank) { return NameOf(rank); }),
      outbox_([this](int rank) { return NameOf(rank); }) {
  int mine = segment_.rank();
  for (int r = 0; r < segment_.world_size(); ++r) {
    bool other = r != mine;
    inbox_.AddSource(other ? std::make_unique<ChannelReader>(Place(r, mine)) : nullptr);
    outbox_.AddDestination(other ? std::make_unique<ChannelWriter>(Place(mine, r)) : nullptr);
  }
}

Messages::~Messages() { Abort(Error{ErrorCode::kSystem, "the process group was destroyed"}); }

Bell& Messages::bell(int rank) const {
  return *reinterpret_cast<Bell*>(segment_.messages() + layout_.BellAt(rank));
}

ChannelPlace Messages::Place(int sender, int receiver) const {
  std::byte* base = segment_.messages();
  return ChannelPlace{
      .state = *reinterpret_cast<ChannelState*>(base + layout_.StateAt(sender, receiver)),
      .ring = base + layout_.RingAt(sender, receiver),
      .ring_bytes = layout_.RingBytes(),
      .other_end = bell(sender == segment_.rank() ? receiver : sender)};
}

std::string Messages::NameOf(int rank) const {
  const int one[] = {rank};
  return segment_.NamesOf(one);
}

Result<std::unique_ptr<Transfer>> Messages::StartSend(ConstBlock data, int destination,
                                                      const Envelope& envelope) {
  auto transfer = std::make_unique<SendTransfer>(*this, data, destination, envelope);
  MutexLock lock(mutex_);
  if (aborted_) {
    transfer->sending().Finish(aborted_);
    return *aborted_;
  }
  outbox_.Post(transfer->sending());
  return std::unique_ptr<Transfer>(std::move(transfer));
}

Result<std::unique_ptr<Transfer>> Messages::StartRecv(Block data, std::optional<int> source,
                                                      const Envelope& envelope) {
  auto transfer = std::make_unique<RecvTransfer>(*this, data, source, envelope);
  MutexLock lock(mutex_);
  if (aborted_) {
    transfer->receiving().Finish(aborted_);
    return *aborted_;
  }
  inbox_.Post(transfer->receiving());
  return std::unique_ptr<Transfer>(std::move(transfer));
}

bool Messages::Move() {
  if (!mutex_.TryLock()) return true;  // another thread moves them
  MutexLock lock(mutex_, std::adopt_lock);
  bool moved = MoveLocked();
  return moved || inbox_.Busy() || outbox_.Busy();
}

// Rings this rank's own bell, because another of its threads may sleep until a
// transfer that moved here is over.
bool Messages::MoveLocked() {
  if (aborted_) return false;
  bool moved = outbox_.Put();
  moved |= inbox_.Take();
  const auto& failure = inbox_.failure() ? inbox_.failure() : outbox_.failure();
  if (failure) {
    segment_.errors().Publish(*failure);
    AbortLocked(*failure);
    return true;
  }
  if (moved) bell(segment_.rank()).Ring();
  return moved;
}

void Messages::Abort(const Error& error) {
  MutexLock lock(mutex_);
  AbortLocked(error);
}

void Messages::AbortLocked(const Error& error) {
  if (!aborted_) aborted_ = EndOfTransfers(error);
  outbox_.EndAll(*aborted_);
  inbox_.EndAll(*aborted_);
  bell(segment_.rank()).Ring();
}

bool Messages::Test(TransferInfo& info) {
  if (info.transfer.over()) return true;
  Move();
  if (!info.transfer.over() && Now() >= info.next_check) CheckForEnd(info);
  return info.transfer.over();
}

Result<void> Messages::Wait(TransferInfo& info, milliseconds timeout) {
  const PendingTransfer& transfer = info.transfer;
  TimePoint deadline = Now() + timeout;
  Move();
  while (!transfer.over()) {
    if (!info.patient && SpinUntilOver(info, deadline)) break;
    info.patient = true;
    TimePoint now = Now();
    if (now >= info.next_check) CheckForEnd(info);
    if (transfer.over()) break;
    if (now >= deadline) return TimedOut(info, timeout);
    Duration slice = waiter_.fences() ? Duration(kSlice) : Duration(kShortSlice);
    if (Sleep(info, std::min<Duration>(deadline - now, slice))) info.patient = false;
  }
  if (transfer.error) return *transfer.error;
  return {};
}

// Moves data without sleeping, as long as there is progress. Returns whether
// the transfer is over.
bool Messages::SpinUntilOver(const TransferInfo& info, TimePoint deadline) {
  int spins = waiter_.spins() > 0 ? kSpins : 0;
  TimePoint until = std::min(deadline, info.next_check);
  for (int i = 0; i < spins + kYields && !info.transfer.over(); ++i) {
    bool moved = false;
    if (mutex_.TryLock()) {
      MutexLock lock(mutex_, std::adopt_lock);
      moved = MoveLocked();
    }
    if (moved) i = 0;
    if (!moved && i < spins) {
      Pause();
      continue;
    }
    if (segment_.failed() || waiter_.deaths().has_death() || Now() >= until) break;
    if (!moved) sched_yield();
  }
  return info.transfer.over();
}

// Sleeps until the bell rings, or `limit`. Returns whether any data has moved.
bool Messages::Sleep(const TransferInfo& info, Duration limit) {
  Bell& mine = bell(segment_.rank());
  mine.sleepers.fetch_add(1);
  // After the fence writers see a sleeper, or this rank sees their writes.
  if (waiter_.fences()) PassFence();
  uint32_t seen = mine.rings.load(std::memory_order_acquire);
  bool moved = false;
  {
    MutexLock lock(mutex_);
    moved = MoveLocked();
  }
  if (!moved && !info.transfer.over()) FutexWait(FutexOf(mine.rings), seen, limit);
  mine.sleepers.fetch_sub(1);
  MutexLock lock(mutex_);
  return MoveLocked() || moved;
}

// Ends the transfer if its peer or the group has ended. Data sent before that
// end is still received first.
void Messages::CheckForEnd(TransferInfo& info) {
  info.next_check = Now() + kCheckInterval;
  auto end = waiter_.FindEnd([&](int rank) { return Needs(info, rank); }, info.began);
  if (!end) return;
  MutexLock lock(mutex_);
  MoveLocked();
  if (info.transfer.over()) return;
  // Publish now with this error code; the group's Abort would publish kSystem.
  segment_.errors().Publish(*end);
  End(info, EndOfTransfers(*std::move(end)));
}

// Returns whether the transfer must fail if `rank` has ended. A receive from
// any rank survives ranks that left while others remain, but not a rank that
// died.
bool Messages::Needs(const TransferInfo& info, int rank) const {
  if (rank == segment_.rank()) return false;
  if (info.peer) return rank == *info.peer;
  if (segment_.area(rank).left.load(std::memory_order_acquire) == 0) return true;
  for (int r = 0; r < segment_.world_size(); ++r) {
    if (r != segment_.rank() && segment_.area(r).left.load(std::memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

void Messages::End(TransferInfo& info, Error error) {
  if (info.send) {
    outbox_.Forget(static_cast<const PendingSend&>(info.transfer));
  } else {
    inbox_.Forget(static_cast<const PendingRecv&>(info.transfer));
  }
  info.transfer.Finish(std::move(error));
}

void Messages::Drop(TransferInfo& info) {
  RANKRUN_CHECK(info.transfer.over(), "a message under way was destroyed");
}

Error Messages::TimedOut(const TransferInfo& info, milliseconds timeout) const {
  std::string peer = info.peer ? NameOf(*info.peer) : "no rank";
  std::string what = info.peer ? " has not " : " has ";
  return Error{ErrorCode::kTimeout, peer + what + (info.send ? "taken" : "sent") + " a message" +
                                        TagText(info.transfer.envelope.tag) + ", waited " +
                                        FormatSeconds(timeout)};
}

}  // namespace rankrun::comm::shm
