#include "comm/gloo/gloo_messages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "comm/gloo/gloo_words.h"
#include "comm/gloo/without_sigpipe.h"

namespace rankrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How soon to look again: at once after something has moved, then more and more
// rarely. Gloo has no way to wait for one of several.
constexpr microseconds kBusyFor{100};
constexpr microseconds kSleepAtLeast{50};
constexpr microseconds kSleepAtMost{2000};

// How often to look whether a peer is lost, or a death is told.
constexpr milliseconds kLookEvery{5};

TimePoint Now() { return std::chrono::steady_clock::now(); }

uint64_t DataSlot(uint64_t id) { return SlotOf(SlotUse::kMessage, id); }

std::string Size(uint64_t bytes, DType dtype) {
  return std::to_string(bytes / SizeOf(dtype)) + " x " + NameOf(dtype);
}

}  // namespace

// What the caller has of a message.
class Messages::Handle final : public Transfer {
 public:
  Handle(Messages& messages, std::shared_ptr<Message> message)
      : messages_(messages), message_(std::move(message)) {}

  bool Test() override {
    const WithoutSigpipe without_sigpipe;
    messages_.MoveOn(Now());
    std::lock_guard lock(messages_.mutex_);
    return message_->over;
  }

  Result<void> Wait(milliseconds timeout) override {
    std::unique_lock lock(messages_.mutex_);
    const auto over = [this] { return message_->over; };
    if (!messages_.ended_.wait_for(lock, std::min<milliseconds>(timeout, std::chrono::hours(8760)),
                                   over)) {
      return Error{ErrorCode::kTimeout,
                   "not over after " + std::to_string(timeout.count()) + " ms"};
    }
    if (message_->error) return *message_->error;
    return {};
  }

  int source() const override { return message_->is_send ? -1 : message_->peer.value_or(-1); }

  std::optional<Unasked> FirstUnasked() override {
    if (message_->is_send) return std::nullopt;
    std::lock_guard lock(messages_.mutex_);
    for (const Offer& offer : messages_.unmatched_) {
      if (message_->peer.value_or(offer.peer) == offer.peer) {
        return Unasked{.source = offer.peer, .tag = offer.message.tag};
      }
    }
    return std::nullopt;
  }

 private:
  Messages& messages_;
  const std::shared_ptr<Message> message_;  // shared with the list of those under way
};

Messages::Messages(const BackendConfig& config, std::shared_ptr<::gloo::Context> context,
                   Control& control, Notes& notes, Wakeup& wakeup)
    : global_ranks_(config.global_ranks),
      deaths_(config.deaths),
      context_(std::move(context)),
      control_(control),
      notes_(notes),
      wakeup_(wakeup),
      losses_(config.global_ranks.size()) {}

std::unique_ptr<Transfer> Messages::Start(Message message) {
  const WithoutSigpipe without_sigpipe;
  auto shared = std::make_shared<Message>(std::move(message));
  auto handle = std::make_unique<Handle>(*this, shared);
  std::lock_guard lock(mutex_);
  shared->began = last_progress_ = Now();
  if (stopped_) {
    Finish(*shared, *stopped_);
    return handle;
  }
  open_.push_back(shared);
  if (shared->is_send) {
    Propose(*shared);
  } else {
    const auto fits = [&](const Offer& offer) {
      return offer.message.tag == shared->envelope.tag &&
             (!shared->peer || *shared->peer == offer.peer);
    };
    const auto offer = std::find_if(unmatched_.begin(), unmatched_.end(), fits);
    if (offer != unmatched_.end()) {
      Meet(*shared, *offer);
      unmatched_.erase(offer);
    }
  }
  RemoveOver();
  wakeup_.Set();
  return handle;
}

TimePoint Messages::Poll(TimePoint now) {
  const TimePoint next = MoveOn(now);
  FindReasons();
  return next;
}

TimePoint Messages::MoveOn(TimePoint now) {
  std::lock_guard lock(mutex_);
  // Though nothing is under way: what is not received hides a farewell and a loss.
  if (Receive()) last_progress_ = now;
  if (open_.empty()) return TimePoint::max();
  // Though something has come: a peer that sends all the time would hide a death.
  if (now >= next_look_) {
    LookForLosses();
    next_look_ = now + kLookEvery;
  }
  RemoveOver();
  if (open_.empty()) return TimePoint::max();
  const auto quiet = std::chrono::duration_cast<microseconds>(now - last_progress_);
  if (quiet < kBusyFor) return now;
  return now + std::clamp(quiet / 4, kSleepAtLeast, kSleepAtMost);
}

// Without mutex_ while the store is asked: nobody's Test waits for it.
void Messages::FindReasons() {
  std::vector<std::pair<std::size_t, Loss>> unexplained;
  {
    std::lock_guard lock(mutex_);
    for (std::size_t peer = 0; peer < losses_.size(); ++peer) {
      const auto& loss = losses_[peer];
      if (loss && !loss->error) unexplained.emplace_back(peer, *loss);
    }
  }
  for (const auto& [peer, loss] : unexplained) {
    auto error = notes_.WhyLost(static_cast<int>(peer), loss.why, loss.since);
    if (!error) continue;
    std::lock_guard lock(mutex_);
    losses_[peer]->error = std::move(error);
    next_look_ = {};
  }
}

void Messages::Stop(const Error& why) {
  std::lock_guard lock(mutex_);
  Error end = why;
  // Of a transfer it would say that it goes on.
  if (end.code == ErrorCode::kTimeout) end.code = ErrorCode::kCancelled;
  if (!stopped_) stopped_ = end;
  for (const auto& message : open_) Finish(*message, end);
  open_.clear();
  unmatched_.clear();
}

// Whether anything has come.
bool Messages::Receive() {
  bool any = false;
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == control_.rank()) continue;
    while (const auto message = control_.Receive(peer)) {
      any = true;
      switch (message->kind) {
        case ControlMessage::Kind::kHello:
        case ControlMessage::Kind::kFarewell:  // not given here
          break;
        case ControlMessage::Kind::kOffer:
          OnOffer({peer, *message});
          break;
        case ControlMessage::Kind::kAccept:
          OnAccept(peer, *message);
          break;
        case ControlMessage::Kind::kSent:
          OnSent(peer, *message);
          break;
        case ControlMessage::Kind::kEnd:
          OnEnd(peer, *message);
          break;
      }
    }
  }
  return any;
}

void Messages::Propose(Message& send) {
  send.id = ++last_id_;
  send.matched = true;
  ControlMessage offer{.kind = ControlMessage::Kind::kOffer,
                       .id = send.id,
                       .tag = send.envelope.tag,
                       .dtype = static_cast<uint64_t>(send.envelope.dtype),
                       .bytes = send.bytes};
  if (send.bytes > 0 && send.bytes <= offer.payload.size()) {
    std::memcpy(offer.payload.data(), send.data, send.bytes);
  }
  control_.Send(*send.peer, offer);
}

void Messages::OnOffer(const Offer& offer) {
  for (const auto& message : open_) {
    if (message->is_send || message->matched || message->over) continue;
    if (message->envelope.tag != offer.message.tag) continue;
    if (message->peer && *message->peer != offer.peer) continue;
    Meet(*message, offer);
    return;
  }
  unmatched_.push_back(offer);
}

void Messages::Meet(Message& receive, const Offer& offer) {
  const ControlMessage& message = offer.message;
  receive.matched = true;
  receive.peer = offer.peer;
  receive.id = message.id;
  const bool same_dtype = message.dtype == static_cast<uint64_t>(receive.envelope.dtype);
  if (!same_dtype || message.bytes != receive.bytes) {
    Refuse(receive, offer);
    return;
  }
  if (message.bytes <= message.payload.size()) {
    if (message.bytes > 0) std::memcpy(receive.data, message.payload.data(), message.bytes);
    control_.Send(offer.peer, {.kind = ControlMessage::Kind::kEnd, .id = message.id});
    Finish(receive);
    return;
  }
  try {
    receive.buffer = context_->createUnboundBuffer(receive.data, receive.bytes);
    receive.buffer->recv(offer.peer, DataSlot(message.id));
  } catch (const std::exception& exception) {
    return Lose(offer.peer, exception.what());
  }
  control_.Send(offer.peer, {.kind = ControlMessage::Kind::kAccept, .id = message.id});
}

void Messages::Refuse(Message& receive, const Offer& offer) {
  control_.Send(offer.peer, {.kind = ControlMessage::Kind::kEnd,
                             .id = offer.message.id,
                             .dtype = static_cast<uint64_t>(receive.envelope.dtype),
                             .bytes = receive.bytes,
                             .ok = 0});
  Finish(receive, Differ(receive, static_cast<DType>(offer.message.dtype), offer.message.bytes));
}

void Messages::OnAccept(int peer, const ControlMessage& message) {
  const auto send = Find(true, peer, message.id);
  if (!send) return;  // it has been stopped
  try {
    send->buffer = context_->createUnboundBuffer(send->data, send->bytes);
    send->buffer->send(peer, DataSlot(message.id));
  } catch (const std::exception& exception) {
    return Lose(peer, exception.what());
  }
  control_.Send(peer, {.kind = ControlMessage::Kind::kSent, .id = message.id});
}

void Messages::OnSent(int peer, const ControlMessage& message) {
  const auto receive = Find(false, peer, message.id);
  if (!receive) return;
  try {
    receive->buffer->waitRecv(std::chrono::seconds(10));  // it is there: the data came first
  } catch (const std::exception& exception) {
    return Lose(peer, exception.what());
  }
  control_.Send(peer, {.kind = ControlMessage::Kind::kEnd, .id = message.id});
  Finish(*receive);
}

void Messages::OnEnd(int peer, const ControlMessage& message) {
  const auto send = Find(true, peer, message.id);
  if (!send) return;
  if (message.ok != 0) {
    Finish(*send);
  } else {
    Finish(*send, Differ(*send, static_cast<DType>(message.dtype), message.bytes));
  }
}

std::shared_ptr<Messages::Message> Messages::Find(bool is_send, int peer, uint64_t id) const {
  for (const auto& message : open_) {
    if (message->is_send == is_send && message->matched && message->id == id &&
        message->peer == peer && !message->over) {
      return message;
    }
  }
  return nullptr;
}

void Messages::LookForLosses() {
  const bool dead = deaths_.told();
  for (const auto& message : open_) {
    if (message->over) continue;
    if (const Loss* loss = LossOf(*message); loss != nullptr && loss->error) {
      Finish(*message, loss->error);
    } else if (dead) {
      Finish(*message, deaths_.Ended(message->began));
    }
  }
}

// Of a receive from anyone: the first, if all are lost.
const Messages::Loss* Messages::LossOf(const Message& message) {
  if (message.peer) return LossOf(*message.peer);
  const Loss* first = nullptr;  // none in a group of one: nobody to lose
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == control_.rank()) continue;
    const Loss* loss = LossOf(peer);
    if (loss == nullptr) return nullptr;
    if (first == nullptr) first = loss;
  }
  return first;
}

const Messages::Loss* Messages::LossOf(int peer) {
  auto& loss = losses_[static_cast<std::size_t>(peer)];
  if (!loss) {
    const auto why = control_.Lost(peer);
    if (!why) return nullptr;
    loss = Loss{.since = Now(), .why = *why, .error = {}};
  }
  return &*loss;
}

// Its messages end once the reason is known.
void Messages::Lose(int peer, const std::string& why) {
  auto& loss = losses_[static_cast<std::size_t>(peer)];
  if (!loss) loss = Loss{.since = Now(), .why = PlainWords(why), .error = {}};
}

void Messages::Finish(Message& message, std::optional<Error> error) {
  message.buffer.reset();  // from here on Gloo does not touch the block
  message.error = std::move(error);
  message.over = true;
  ended_.notify_all();
}

void Messages::RemoveOver() {
  open_.remove_if([](const auto& message) { return message->over; });
}

Error Messages::Differ(const Message& message, DType other, uint64_t other_bytes) const {
  const auto name = [this](int rank) {
    return NameRanks({global_ranks_[static_cast<std::size_t>(rank)]});
  };
  const std::string here = Size(message.bytes, message.envelope.dtype);
  const std::string there = Size(other_bytes, other);
  const int sender = message.is_send ? control_.rank() : *message.peer;
  const int receiver = message.is_send ? *message.peer : control_.rank();
  return {ErrorCode::kInvalid,
          name(sender) + " sends " + (message.is_send ? here : there) + " with tag " +
              std::to_string(message.envelope.tag % kObjectTags) + " to " + name(receiver) +
              ", which expects " + (message.is_send ? there : here)};
}

}  // namespace rankrun::comm
