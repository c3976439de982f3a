#include "comm/messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How long one waits for a message before others get their turn.
constexpr milliseconds kSlice{1};
// Between looks at messages that nobody waits for.
constexpr Duration kShortestNap = std::chrono::microseconds(50);
// Between looks of who waits for a message of its own.
constexpr milliseconds kOwnSlice{4};

bool IsSend(const Messages::Message& message) {
  return message.operation.kind == Operation::Kind::kSend;
}

milliseconds Left(const Messages::Message& message) {
  const auto waited = std::chrono::steady_clock::now() - message.since;
  return std::chrono::ceil<milliseconds>(message.timeout - waited);
}

}  // namespace

Messages::Messages(Backend& backend, int group_rank, std::function<int(int)> to_global,
                   DeathWatch deaths, Failed failed)
    : backend_(backend),
      group_rank_(group_rank),
      to_global_(std::move(to_global)),
      deaths_(deaths),
      failed_(std::move(failed)),
      nap_(kShortestNap) {}

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
      while (!state->AwaitFor(std::clamp(Left(message), milliseconds(1), kOwnSlice))) {
        FinishOwnThatIsOver();
      }
      if (!state->result()) return Error(state->result().error());
      return to_global_(group_rank_);
    }
  }
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  callers_ += 1;
  std::optional<Error> why;
  for (bool over = false; !over && !why;) {
    std::lock_guard lock(mutex_);
    auto ok = (*transfer)->Wait(std::clamp(Left(message), milliseconds(0), kSlice));
    over = static_cast<bool>(ok);
    if (!ok && ok.error().code != ErrorCode::kTimeout) {
      why = std::move(ok).error();
    } else if (!ok && Left(message) <= milliseconds(0)) {
      why = TimedOut(message, transfer->get());
    }
  }
  callers_ -= 1;
  if (why) return failed_(message, *std::move(why));
  return to_global_(IsSend(message) ? group_rank_ : (*transfer)->source());
}

Result<std::shared_ptr<WorkState>> Messages::Start(const Message& message, Block data) {
  auto state = std::make_shared<WorkState>(attendance_);
  if (StartOwn(message, data, state)) return state;
  auto transfer = StartTransfer(message, data);
  if (!transfer) return failed_(message, std::move(transfer).error());
  std::lock_guard lock(mutex_);
  pending_.push_back({message, *std::move(transfer), state});
  return state;
}

bool Messages::Progress() {
  const bool waits = attendance_->any() && callers_.load() == 0;
  std::vector<Ended> ended = TakeEnded(waits ? kSlice : milliseconds(0));
  for (Ended& end : ended) {
    Pending& pending = end.pending;
    if (!end.result) end.result = failed_(pending.message, std::move(end.result).error());
    const bool received = end.result && !IsSend(pending.message);
    pending.state->Finish(std::move(end.result),
                          received ? to_global_(pending.transfer->source()) : -1);
  }
  FinishOwnThatIsOver();
  std::unique_lock lock(mutex_);
  if (pending_.empty() && own_receives_.empty()) return false;
  const bool has_waited = waits && !pending_.empty();
  lock.unlock();
  nap_ = ended.empty() ? std::min<Duration>(2 * nap_, kSlice) : kShortestNap;
  if (!has_waited) attendance_->Nap(nap_);
  return true;
}

// Of a receive of this rank from itself that has not been met.
std::optional<Error> Messages::WhyOver(const Message& message) const {
  if (ended_) return Error{ErrorCode::kSystem, "the process group is broken"};
  if (deaths_.told()) return deaths_.Ended(message.since);
  if (Left(message) <= milliseconds(0)) return TimedOut(message, nullptr);
  return std::nullopt;
}

void Messages::FinishOwnThatIsOver() {
  std::vector<std::pair<OwnReceive, Error>> over;
  {
    std::lock_guard lock(mutex_);
    for (auto next = own_receives_.begin(); next != own_receives_.end();) {
      const auto here = next++;
      auto why = WhyOver(here->message);
      if (!why) continue;
      over.emplace_back(std::move(*here), *std::move(why));
      own_receives_.erase(here);
    }
  }
  for (auto& [receive, why] : over) receive.state->Finish(failed_(receive.message, std::move(why)));
}

void Messages::EndOwn() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  FinishOwnThatIsOver();
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
std::vector<Messages::Ended> Messages::TakeEnded(milliseconds slice) {
  std::vector<Ended> ended;
  std::lock_guard lock(mutex_);
  for (auto next = pending_.begin(); next != pending_.end();) {
    const auto here = next++;
    const bool first = here == pending_.begin();
    Result<void> result;
    if (first || here->transfer->Test()) {
      result = here->transfer->Wait(first ? slice : milliseconds(0));
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
