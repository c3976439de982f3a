#include "comm/messages.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How long one waits for a message before others get their turn.
constexpr milliseconds kSlice{1};

bool IsSend(const Messages::Message& message) {
  return message.operation.kind == Operation::Kind::kSend;
}

milliseconds Left(const Messages::Message& message) {
  const auto waited = std::chrono::steady_clock::now() - message.since;
  return std::chrono::ceil<milliseconds>(message.timeout - waited);
}

}  // namespace

Messages::Messages(Backend& backend, int group_rank, std::function<int(int)> to_global,
                   Failed failed)
    : backend_(backend),
      group_rank_(group_rank),
      to_global_(std::move(to_global)),
      failed_(std::move(failed)) {}

Messages::~Messages() {
  if (!pending_.empty()) {
    backend_.Abort("rank " + std::to_string(to_global_(group_rank_)) +
                   " destroyed the process group with messages under way");
  }
  const auto finish = [](const Message& message, WorkState& state) {
    state.Finish(Error{ErrorCode::kSystem,
                       Describe(message.operation) + ": the process group was destroyed"});
  };
  for (Pending& pending : pending_) finish(pending.message, *pending.state);
  for (OwnReceive& receive : own_receives_) finish(receive.message, *receive.state);
}

Result<int> Messages::Move(const Message& message, Block data) {
  if (message.peer.value_or(group_rank_) == group_rank_) {
    auto state = std::make_shared<WorkState>();
    if (StartOwn(message, data, state)) {
      if (!state->AwaitFor(message.timeout)) FinishLateOwn();
      state->Await();  // if not late, then a sender is about to finish it
      if (!state->result()) return Error(state->result().error());
      return to_global_(group_rank_);
    }
  }
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  for (;;) {
    std::optional<Error> late;
    {
      std::lock_guard lock(mutex_);
      auto ok = (*transfer)->Wait(std::clamp(Left(message), milliseconds(0), kSlice));
      if (ok) return to_global_(IsSend(message) ? group_rank_ : (*transfer)->source());
      if (ok.error().code != ErrorCode::kTimeout) return failed_(message, std::move(ok).error());
      if (Left(message) <= milliseconds(0)) late = TimedOut(message, transfer->get());
    }
    if (late) return failed_(message, *std::move(late));
    std::this_thread::yield();
  }
}

Result<void> Messages::Start(const Message& message, Block data, std::shared_ptr<WorkState> state) {
  if (StartOwn(message, data, state)) return {};
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  std::lock_guard lock(mutex_);
  pending_.push_back({message, *std::move(transfer), std::move(state)});
  return {};
}

bool Messages::Progress() {
  std::vector<Ended> ended = TakeEnded();
  for (Ended& end : ended) {
    Pending& pending = end.pending;
    if (!end.result) end.result = failed_(pending.message, std::move(end.result).error());
    const bool received = end.result && !IsSend(pending.message);
    pending.state->Finish(std::move(end.result),
                          received ? to_global_(pending.transfer->source()) : -1);
  }
  FinishLateOwn();
  std::unique_lock lock(mutex_);
  if (!pending_.empty() || own_receives_.empty()) return !pending_.empty();
  lock.unlock();
  std::this_thread::sleep_for(kSlice);  // nothing moves them on but this rank
  return true;
}

void Messages::FinishLateOwn() {
  std::list<OwnReceive> late;
  {
    std::lock_guard lock(mutex_);
    for (auto next = own_receives_.begin(); next != own_receives_.end();) {
      const auto here = next++;
      if (Left(here->message) <= milliseconds(0)) late.splice(late.end(), own_receives_, here);
    }
  }
  for (OwnReceive& each : late) {
    each.state->Finish(failed_(each.message, TimedOut(each.message, nullptr)));
  }
}

// Without a transfer: of a message of this rank to itself.
Error Messages::TimedOut(const Message& message, Transfer* transfer) const {
  std::string text = std::string("no matching ") + (IsSend(message) ? "Recv" : "Send") +
                     (message.operation.is_of_objects() ? "Objects" : "") + " after " +
                     std::to_string(message.timeout.count()) + " ms";
  const auto unasked = transfer == nullptr ? std::nullopt : transfer->FirstUnasked();
  if (unasked) {
    text += "; rank " + std::to_string(to_global_(unasked->source)) + " has sent " +
            TagInWords(unasked->tag) + ", for which nobody has asked";
  }
  return Error{ErrorCode::kTimeout, std::move(text)};
}

// Waits for the first only: whatever moves it on moves the others, too.
std::vector<Messages::Ended> Messages::TakeEnded() {
  std::vector<Ended> ended;
  std::lock_guard lock(mutex_);
  for (auto next = pending_.begin(); next != pending_.end();) {
    const auto here = next++;
    const bool first = here == pending_.begin();
    Result<void> result;
    if (first || here->transfer->Test()) {
      result = here->transfer->Wait(first ? kSlice : milliseconds(0));
    } else if (Left(here->message) > milliseconds(0)) {
      continue;
    } else {
      result = TimedOut(here->message, here->transfer.get());
    }
    const bool still_there = !result && result.error().code == ErrorCode::kTimeout;
    if (still_there && Left(here->message) > milliseconds(0)) continue;
    if (still_there) result = TimedOut(here->message, here->transfer.get());
    ended.push_back({std::move(*here), std::move(result)});
    pending_.erase(here);
  }
  return ended;
}

Result<std::unique_ptr<Transfer>> Messages::StartTransfer(const Message& message, Block data) {
  std::lock_guard lock(mutex_);
  if (IsSend(message)) {
    return backend_.StartSend({data.data, data.bytes}, *message.peer, message.envelope);
  }
  return backend_.StartRecv(data, message.peer, message.envelope);
}

// Whether `message` is one of this rank to itself, or a receive from anyone for
// which there already is one.
bool Messages::StartOwn(const Message& message, Block data,
                        const std::shared_ptr<WorkState>& state) {
  if (!IsSend(message)) return ReceiveOwn(message, data, state);
  if (message.peer != group_rank_) return false;
  Parcel parcel{message.envelope, {data.data, data.data + data.bytes}};
  std::unique_lock lock(mutex_);
  const auto waiting =
      std::find_if(own_receives_.begin(), own_receives_.end(), [&](const OwnReceive& receive) {
        return receive.message.envelope.tag == message.envelope.tag;
      });
  if (waiting == own_receives_.end()) {
    own_.push_back(std::move(parcel));
    lock.unlock();
  } else {
    const OwnReceive receive = std::move(*waiting);
    own_receives_.erase(waiting);
    lock.unlock();
    receive.state->Finish(Unpack(parcel, receive.message, receive.data), to_global_(group_rank_));
  }
  state->Finish({});
  return true;
}

bool Messages::ReceiveOwn(const Message& message, Block data,
                          const std::shared_ptr<WorkState>& state) {
  if (message.peer.value_or(group_rank_) != group_rank_) return false;
  std::unique_lock lock(mutex_);
  const auto parcel = std::find_if(own_.begin(), own_.end(), [&](const Parcel& sent) {
    return sent.envelope.tag == message.envelope.tag;
  });
  if (parcel != own_.end()) {
    const Parcel taken = std::move(*parcel);
    own_.erase(parcel);
    lock.unlock();
    state->Finish(Unpack(taken, message, data), to_global_(group_rank_));
    return true;
  }
  if (!message.peer) return false;
  own_receives_.push_back({message, data, state});
  return true;
}

Result<void> Messages::Unpack(const Parcel& parcel, const Message& message, Block data) const {
  if (parcel.data.size() != data.bytes || parcel.envelope.dtype != message.envelope.dtype) {
    return failed_(message,
                   {ErrorCode::kInvalid, "the message has " + std::to_string(parcel.data.size()) +
                                             " bytes of " + rankrun::NameOf(parcel.envelope.dtype) +
                                             ": want " + std::to_string(data.bytes) + " of " +
                                             rankrun::NameOf(message.envelope.dtype)});
  }
  if (data.bytes > 0) std::memcpy(data.data, parcel.data.data(), data.bytes);
  return {};
}

}  // namespace rankrun::comm
