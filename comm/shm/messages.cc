#include "comm/shm/messages.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "comm/shm/futex.h"

namespace rankrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSpins = 300;  // each looks at all channels
constexpr int kYields = 200;
constexpr milliseconds kSlice{4};
constexpr microseconds kShortSlice{200};  // without fences a sleeper may be missed
constexpr milliseconds kBetweenLooks{4};

TimePoint Now() { return MonotonicClock().Now(); }

// What transfers end with: kTimeout would say that they go on.
Error EndOfTransfers(Error error) {
  if (error.code == ErrorCode::kTimeout) error.code = ErrorCode::kCancelled;
  return error;
}

}  // namespace

std::string TagText(uint64_t tag) { return " (" + TagInWords(tag) + ")"; }

std::string MessageText(const MessageHeader& header) {
  return std::to_string(header.bytes) + " bytes of " +
         rankrun::NameOf(static_cast<DType>(header.dtype)) + TagText(header.tag);
}

std::string WantedText(const MessageHeader& header, std::size_t bytes, DType dtype) {
  if (header.dtype == static_cast<uint64_t>(dtype)) return std::to_string(bytes);
  return std::to_string(bytes) + " bytes of " + rankrun::NameOf(dtype);
}

class ShmMessages::SendTransfer final : public Transfer {
 public:
  SendTransfer(ShmMessages& messages, ConstBlock data, int destination, const Envelope& envelope)
      : messages_(messages),
        sending_(data, destination, envelope),
        wanted_{.moving = sending_,
                .peer = destination,
                .send = true,
                .began = Now(),
                .next_look = Now() + kBetweenLooks} {}
  ~SendTransfer() override { messages_.Drop(wanted_); }
  bool Test() override { return messages_.Test(wanted_); }
  Result<void> Wait(milliseconds timeout) override { return messages_.Wait(wanted_, timeout); }
  int source() const override { return -1; }
  Sending& sending() { return sending_; }

 private:
  ShmMessages& messages_;
  Sending sending_;
  Wanted wanted_;
};

class ShmMessages::RecvTransfer final : public Transfer {
 public:
  RecvTransfer(ShmMessages& messages, Block data, std::optional<int> source,
               const Envelope& envelope)
      : messages_(messages),
        receiving_(data, source, envelope),
        wanted_{.moving = receiving_,
                .peer = source,
                .send = false,
                .began = Now(),
                .next_look = Now() + kBetweenLooks} {}
  ~RecvTransfer() override { messages_.Drop(wanted_); }
  bool Test() override { return messages_.Test(wanted_); }
  Result<void> Wait(milliseconds timeout) override { return messages_.Wait(wanted_, timeout); }
  int source() const override { return receiving_.source; }
  std::optional<Unasked> FirstUnasked() override {
    std::lock_guard lock(messages_.mutex_);
    return messages_.inbox_.FirstUnasked(receiving_.wanted_source);
  }
  Receiving& receiving() { return receiving_; }

 private:
  ShmMessages& messages_;
  Receiving receiving_;
  Wanted wanted_;
};

ShmMessages::ShmMessages(const Segment& segment, DeathWatch deaths)
    : segment_(segment),
      layout_{.world_size = segment.world_size()},
      waiter_(segment, deaths),
      inbox_([this](int rank) { return NameOf(rank); }),
      outbox_([this](int rank) { return NameOf(rank); }) {
  const int mine = segment_.rank();
  for (int r = 0; r < segment_.world_size(); ++r) {
    const bool other = r != mine;
    inbox_.AddSource(other ? std::make_unique<ChannelReader>(Place(r, mine)) : nullptr);
    outbox_.AddDestination(other ? std::make_unique<ChannelWriter>(Place(mine, r)) : nullptr);
  }
}

ShmMessages::~ShmMessages() { Abort(Error{ErrorCode::kSystem, "the process group was destroyed"}); }

Bell& ShmMessages::bell(int rank) const {
  return *reinterpret_cast<Bell*>(segment_.messages() + layout_.BellAt(rank));
}

ChannelPlace ShmMessages::Place(int sender, int receiver) const {
  std::byte* base = segment_.messages();
  return ChannelPlace{
      .state = *reinterpret_cast<ChannelState*>(base + layout_.StateAt(sender, receiver)),
      .ring = base + layout_.RingAt(sender, receiver),
      .ring_bytes = layout_.RingBytes(),
      .other_end = bell(sender == segment_.rank() ? receiver : sender)};
}

std::string ShmMessages::NameOf(int rank) const {
  const int one[] = {rank};
  return segment_.NamesOf(one);
}

Result<std::unique_ptr<Transfer>> ShmMessages::StartSend(ConstBlock data, int destination,
                                                         const Envelope& envelope) {
  auto transfer = std::make_unique<SendTransfer>(*this, data, destination, envelope);
  std::lock_guard lock(mutex_);
  if (aborted_) {
    transfer->sending().Finish(aborted_);
    return *aborted_;
  }
  outbox_.Post(transfer->sending());
  return std::unique_ptr<Transfer>(std::move(transfer));
}

Result<std::unique_ptr<Transfer>> ShmMessages::StartRecv(Block data, std::optional<int> source,
                                                         const Envelope& envelope) {
  auto transfer = std::make_unique<RecvTransfer>(*this, data, source, envelope);
  std::lock_guard lock(mutex_);
  if (aborted_) {
    transfer->receiving().Finish(aborted_);
    return *aborted_;
  }
  inbox_.Post(transfer->receiving());
  return std::unique_ptr<Transfer>(std::move(transfer));
}

bool ShmMessages::Move() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;  // another thread is at it
  const bool moved = MoveLocked();
  return moved || inbox_.Busy() || outbox_.Busy();
}

// Another thread of this rank may sleep until what has moved here is over.
bool ShmMessages::MoveLocked() {
  if (aborted_) return false;
  bool moved = outbox_.Put();
  moved |= inbox_.Take();
  if (moved) bell(segment_.rank()).Ring();
  return moved;
}

void ShmMessages::Abort(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!aborted_) aborted_ = EndOfTransfers(error);
  outbox_.EndAll(*aborted_);
  inbox_.EndAll(*aborted_);
  bell(segment_.rank()).Ring();
}

bool ShmMessages::Test(Wanted& wanted) {
  if (wanted.moving.over()) return true;
  Move();
  if (!wanted.moving.over() && Now() >= wanted.next_look) Look(wanted);
  return wanted.moving.over();
}

Result<void> ShmMessages::Wait(Wanted& wanted, milliseconds timeout) {
  const Moving& moving = wanted.moving;
  const TimePoint deadline = Now() + timeout;
  Move();
  while (!moving.over()) {
    if (!wanted.patient && Hasten(wanted, deadline)) break;
    wanted.patient = true;
    const TimePoint now = Now();
    if (now >= wanted.next_look) Look(wanted);
    if (moving.over()) break;
    if (now >= deadline) return TimedOut(wanted, timeout);
    const Duration slice = waiter_.fences() ? Duration(kSlice) : Duration(kShortSlice);
    if (Sleep(wanted, std::min<Duration>(deadline - now, slice))) wanted.patient = false;
  }
  if (moving.error) return *moving.error;
  return {};
}

// Without sleeping, while it goes on. Whether it is over.
bool ShmMessages::Hasten(const Wanted& wanted, TimePoint deadline) {
  const int spins = waiter_.spins() > 0 ? kSpins : 0;
  const TimePoint until = std::min(deadline, wanted.next_look);
  for (int i = 0; i < spins + kYields && !wanted.moving.over(); ++i) {
    bool moved = false;
    {
      std::unique_lock lock(mutex_, std::try_to_lock);
      moved = lock && MoveLocked();
    }
    if (moved) i = 0;
    if (!moved && i < spins) {
      Pause();
      continue;
    }
    if (segment_.failed() || waiter_.deaths().told() || Now() >= until) break;
    if (!moved) sched_yield();
  }
  return wanted.moving.over();
}

// Until the bell rings, or `limit`. Whether something has moved.
bool ShmMessages::Sleep(const Wanted& wanted, Duration limit) {
  Bell& mine = bell(segment_.rank());
  mine.sleepers.fetch_add(1);
  // From here on others see a sleeper, or this rank what they have written.
  if (waiter_.fences()) PassFence();
  const uint32_t seen = mine.rings.load(std::memory_order_acquire);
  bool moved = false;
  {
    std::lock_guard lock(mutex_);
    moved = MoveLocked();
  }
  if (!moved && !wanted.moving.over()) FutexWait(FutexOf(mine.rings), seen, limit);
  mine.sleepers.fetch_sub(1);
  std::lock_guard lock(mutex_);
  return MoveLocked() || moved;
}

// What was sent before an end is still taken: then nobody has lost anything.
void ShmMessages::Look(Wanted& wanted) {
  wanted.next_look = Now() + kBetweenLooks;
  auto end = waiter_.LookForEnd([&](int rank) { return Needs(wanted, rank); }, wanted.began);
  if (!end) return;
  std::lock_guard lock(mutex_);
  MoveLocked();
  if (wanted.moving.over()) return;
  // Now, with its code: the group's Abort would tell the others of a failure only.
  segment_.TellError(*end);
  End(wanted, EndOfTransfers(*std::move(end)));
}

// A message from anyone: those who have left may be those who had nothing to
// send, those who died may not.
bool ShmMessages::Needs(const Wanted& wanted, int rank) const {
  if (rank == segment_.rank()) return false;
  if (wanted.peer) return rank == *wanted.peer;
  if (segment_.area(rank).left.load(std::memory_order_acquire) == 0) return true;
  for (int r = 0; r < segment_.world_size(); ++r) {
    if (r != segment_.rank() && segment_.area(r).left.load(std::memory_order_acquire) == 0) {
      return false;
    }
  }
  return true;
}

void ShmMessages::End(Wanted& wanted, Error error) {
  if (wanted.send) {
    outbox_.Forget(static_cast<const Sending&>(wanted.moving));
  } else {
    inbox_.Forget(static_cast<const Receiving&>(wanted.moving));
  }
  wanted.moving.Finish(std::move(error));
}

void ShmMessages::Drop(Wanted& wanted) {
  RANKRUN_CHECK(wanted.moving.over(), "a message under way was destroyed");
}

Error ShmMessages::TimedOut(const Wanted& wanted, milliseconds timeout) const {
  const std::string peer = wanted.peer ? NameOf(*wanted.peer) : "nobody";
  const std::string what = wanted.peer ? " has not " : " has ";
  return Error{ErrorCode::kTimeout, peer + what + (wanted.send ? "taken" : "sent") + " a message" +
                                        TagText(wanted.moving.envelope.tag) + ", waited " +
                                        FormatSeconds(timeout)};
}

}  // namespace rankrun::comm
