#include "comm/async/messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/interruptible_call.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// Longest wait for a transfer before other threads get the mutex.
constexpr milliseconds kSlice{1};
// Shortest pause between polls of messages that no thread waits for.
constexpr Duration kMinNap = std::chrono::microseconds(50);
// Interval at which a receive of this rank from itself checks for its end.
constexpr milliseconds kOwnSlice{4};

milliseconds Left(const Messages::Message& message, TimePoint since) {
  auto waited = std::chrono::steady_clock::now() - since;
  return std::chrono::ceil<milliseconds>(message.timeout - waited);
}
milliseconds Left(const Messages::Message& message) { return Left(message, message.since); }

// Returns whether the time-out of a started message has passed.
bool IsLate(const Messages::Message& message, const WorkState& state) {
  auto since = state.awaited_since();
  return since && Left(message, *since) <= milliseconds(0);
}

}  // namespace

Messages::Messages(Backend& backend, int group_rank, std::function<int(int)> to_global,
                   DeathWatch deaths, Failed failed)
    : backend_(backend),
      group_rank_(group_rank),
      to_global_(std::move(to_global)),
      deaths_(deaths),
      failed_(std::move(failed)),
      nap_(kMinNap) {}

Messages::~Messages() {
  if (!pending_.empty()) {
    backend_.Abort("rank " + std::to_string(to_global_(group_rank_)) +
                   " destroyed the process group with messages under way");
  }
  auto finish = [](const Message& message, WorkState& state) {
    state.Finish(Error{ErrorCode::kSystem,
                       Describe(message.operation) + ": the process group was destroyed"});
  };
  for (Pending& pending : pending_) finish(pending.message, *pending.state);
  for (OwnReceive& receive : own_receives_) finish(receive.message, *receive.state);
}

// Waits for a message of this rank to itself.
Result<int> Messages::AwaitOwn(const Message& message, WorkState& state) {
  while (!state.AwaitFor(std::clamp(Left(message), milliseconds(1), kOwnSlice))) {
    {
      const InterruptibleCall::Deferred deferred;
      FinishOwnThatIsOver();
    }
    if (InterruptibleCall::IsInterrupted()) {
      Error error = failed_(message, InterruptibleCall::Failure());
      const InterruptibleCall::Deferred deferred;
      state.Await();  // another thread may copy to the tensor
      return error;
    }
  }
  if (!state.result()) return Error(state.result().error());
  return to_global_(group_rank_);
}

Result<int> Messages::Move(const Message& message, Block data) {
  if (message.peer.value_or(group_rank_) == group_rank_) {
    auto state = std::make_shared<WorkState>();
    if (StartOwn(message, data, state)) return AwaitOwn(message, *state);
  }
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  callers_ += 1;
  std::optional<Error> why;
  for (bool over = false; !over && !why;) {
    {
      FairMutexLock lock(mutex_);
      // Otherwise the backend would tell the other ranks of a death.
      const InterruptibleCall::Deferred deferred;
      auto ok = (*transfer)->Wait(std::clamp(Left(message), milliseconds(0), kSlice));
      over = static_cast<bool>(ok);
      if (!ok && ok.error().code != ErrorCode::kTimeout) {
        why = std::move(ok).error();
      } else if (!ok && Left(message) <= milliseconds(0)) {
        why = TimedOut(message, transfer->get());
      }
    }
    if (!over && !why && InterruptibleCall::IsInterrupted()) {
      why = InterruptibleCall::Failure();
    }
  }
  callers_ -= 1;
  if (why) return failed_(message, *std::move(why));
  return to_global_(message.is_send ? group_rank_ : (*transfer)->source());
}

Result<std::shared_ptr<WorkState>> Messages::Start(const Message& message, Block data) {
  auto state = std::make_shared<WorkState>(attendance_);
  if (StartOwn(message, data, state)) return state;
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  FairMutexLock lock(mutex_);
  pending_.push_back({message, *std::move(transfer), state});
  return state;
}

bool Messages::Progress() {
  bool waits = attendance_->any() && callers_.load() == 0;
  std::vector<CompletedMessage> ended = TakeEnded(waits ? kSlice : milliseconds(0));
  for (CompletedMessage& end : ended) {
    Pending& pending = end.pending;
    if (!end.result) end.result = failed_(pending.message, std::move(end.result).error());
    bool received = end.result && !pending.message.is_send;
    pending.state->Finish(std::move(end.result),
                          received ? to_global_(pending.transfer->source()) : -1);
  }
  FinishOwnThatIsOver();
  FairMutexLock lock(mutex_);
  if (pending_.empty() && own_receives_.empty()) return false;
  bool has_waited = waits && !pending_.empty();
  lock.Unlock();
  nap_ = ended.empty() ? std::min<Duration>(2 * nap_, kSlice) : kMinNap;
  if (!has_waited) attendance_->Nap(nap_);
  return true;
}

// Returns why a receive of this rank from itself ends without a message, if it
// does.
std::optional<Error> Messages::WhyOver(const OwnReceive& receive) const {
  const Message& message = receive.message;
  if (ended_) return Error{ErrorCode::kSystem, "the process group is broken"};
  if (deaths_.has_death()) return deaths_.ErrorSince(message.since);
  if (IsLate(message, *receive.state)) return TimedOut(message, nullptr);
  return std::nullopt;
}

void Messages::FinishOwnThatIsOver() {
  std::vector<std::pair<OwnReceive, Error>> over;
  {
    FairMutexLock lock(mutex_);
    for (auto next = own_receives_.begin(); next != own_receives_.end();) {
      auto here = next++;
      auto why = WhyOver(*here);
      if (!why) continue;
      over.emplace_back(std::move(*here), *std::move(why));
      own_receives_.erase(here);
    }
  }
  for (auto& [receive, why] : over) receive.state->Finish(failed_(receive.message, std::move(why)));
}

void Messages::EndOwn() {
  {
    FairMutexLock lock(mutex_);
    ended_ = true;
  }
  FinishOwnThatIsOver();
}

// `transfer` is null for a message of this rank to itself.
Error Messages::TimedOut(const Message& message, Transfer* transfer) const {
  std::string text = std::string("no matching ") + (message.is_send ? "Recv" : "Send") +
                     (message.operation.is_of_objects() ? "Objects" : "") + " after " +
                     std::to_string(message.timeout.count()) + " ms";
  auto unasked = transfer == nullptr ? std::nullopt : transfer->FirstUnexpected();
  if (unasked) {
    text += "; rank " + std::to_string(to_global_(unasked->source)) + " has sent " +
            TagInWords(unasked->tag) + ", for which nobody has asked";
  }
  return Error{ErrorCode::kTimeout, std::move(text)};
}

// Waits for the first transfer only, because the backend advances the others
// meanwhile.
std::vector<Messages::CompletedMessage> Messages::TakeEnded(milliseconds slice) {
  std::vector<CompletedMessage> ended;
  FairMutexLock lock(mutex_);
  for (auto next = pending_.begin(); next != pending_.end();) {
    auto here = next++;
    bool first = here == pending_.begin();
    Result<void> result;
    if (first || here->transfer->Test()) {
      result = here->transfer->Wait(first ? slice : milliseconds(0));
    } else if (!IsLate(here->message, *here->state)) {
      continue;
    } else {
      result = TimedOut(here->message, here->transfer.get());
    }
    bool still_there = !result && result.error().code == ErrorCode::kTimeout;
    if (still_there && !IsLate(here->message, *here->state)) continue;
    if (still_there) result = TimedOut(here->message, here->transfer.get());
    ended.push_back({std::move(*here), std::move(result)});
    pending_.erase(here);
  }
  return ended;
}

Result<std::unique_ptr<Transfer>> Messages::StartTransfer(const Message& message, Block data) {
  FairMutexLock lock(mutex_);
  if (message.is_send) {
    return backend_.StartSend({data.data, data.bytes}, *message.peer, message.envelope);
  }
  return backend_.StartRecv(data, message.peer, message.envelope);
}

// Handles `message` if this rank sends it to itself, receives it from itself,
// or receives from any rank and has sent itself a match already. Returns
// whether it did.
bool Messages::StartOwn(const Message& message, Block data,
                        const std::shared_ptr<WorkState>& state) {
  if (!message.is_send) return ReceiveOwn(message, data, state);
  if (message.peer != group_rank_) return false;
  SelfMessage self_message{message.envelope, {data.data, data.data + data.bytes}};
  FairMutexLock lock(mutex_);
  const auto waiting =
      std::find_if(own_receives_.begin(), own_receives_.end(), [&](const OwnReceive& receive) {
        return receive.message.envelope.tag == message.envelope.tag;
      });
  if (waiting == own_receives_.end()) {
    own_.push_back(std::move(self_message));
    lock.Unlock();
  } else {
    OwnReceive receive = std::move(*waiting);
    own_receives_.erase(waiting);
    lock.Unlock();
    receive.state->Finish(Unpack(self_message, receive.message, receive.data),
                          to_global_(group_rank_));
  }
  state->Finish({});
  return true;
}

bool Messages::ReceiveOwn(const Message& message, Block data,
                          const std::shared_ptr<WorkState>& state) {
  if (message.peer.value_or(group_rank_) != group_rank_) return false;
  FairMutexLock lock(mutex_);
  auto self_message = std::find_if(own_.begin(), own_.end(), [&](const SelfMessage& sent) {
    return sent.envelope.tag == message.envelope.tag;
  });
  if (self_message != own_.end()) {
    SelfMessage taken = std::move(*self_message);
    own_.erase(self_message);
    lock.Unlock();
    state->Finish(Unpack(taken, message, data), to_global_(group_rank_));
    return true;
  }
  if (!message.peer) return false;
  own_receives_.push_back({message, data, state});
  return true;
}

Result<void> Messages::Unpack(const SelfMessage& self_message, const Message& message,
                              Block data) const {
  if (self_message.data.size() != data.bytes ||
      self_message.envelope.dtype != message.envelope.dtype) {
    return failed_(message, {ErrorCode::kInvalid,
                             "the message has " + std::to_string(self_message.data.size()) +
                                 " bytes of " + rankrun::NameOf(self_message.envelope.dtype) +
                                 ": want " + std::to_string(data.bytes) + " of " +
                                 rankrun::NameOf(message.envelope.dtype)});
  }
  if (data.bytes > 0) std::memcpy(data.data, self_message.data.data(), data.bytes);
  return {};
}

}  // namespace rankrun::comm
