#include "comm/gloo/messages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/roll_call.h"
#include "comm/gloo/error_text.h"
#include "comm/gloo/without_sigpipe.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Polling: continuously after data has moved, then at growing intervals,
// because Gloo cannot wait for one of several buffers.
constexpr microseconds kBusyFor{100};
constexpr microseconds kMinSleep{50};
constexpr microseconds kMaxSleep{2000};

// Interval of checks for lost peers and death messages.
constexpr milliseconds kCheckInterval{5};

TimePoint Now() { return std::chrono::steady_clock::now(); }

uint64_t DataSlot(uint64_t id) { return SlotOf(SlotUse::kMessage, id); }

}  // namespace

// The caller's handle of a message.
class Messages::Handle final : public Transfer {
 public:
  Handle(Messages& messages, std::shared_ptr<Message> message)
      : messages_(messages), message_(std::move(message)) {}

  bool Test() override {
    const WithoutSigpipe without_sigpipe;
    messages_.MoveOn(Now());
    MutexLock lock(messages_.mutex_);
    return message_->over;
  }

  Result<void> Wait(milliseconds timeout) override {
    TimePoint deadline = Now() + std::min<milliseconds>(timeout, std::chrono::hours(8760));
    MutexLock lock(messages_.mutex_);
    while (!message_->over && messages_.ended_.WaitUntil(messages_.mutex_, deadline)) {
    }
    if (!message_->over) {
      return Error{ErrorCode::kTimeout,
                   "not complete after " + std::to_string(timeout.count()) + " ms"};
    }
    if (message_->error) return *message_->error;
    return {};
  }

  int source() const override { return message_->is_send ? -1 : message_->peer.value_or(-1); }

  std::optional<UnexpectedEnvelope> FirstUnexpected() override {
    if (message_->is_send) return std::nullopt;
    MutexLock lock(messages_.mutex_);
    for (const Offer& offer : messages_.unmatched_) {
      if (message_->peer.value_or(offer.peer) == offer.peer) {
        return UnexpectedEnvelope{.source = offer.peer, .tag = offer.message.tag};
      }
    }
    return std::nullopt;
  }

 private:
  Messages& messages_;
  const std::shared_ptr<Message> message_;  // shared with the list of those under way
};

Messages::Messages(const BackendConfig& config, std::shared_ptr<::gloo::Context> context,
                   Control& control, FailureBoard& failure_board, WakeEvent& wake_event)
    : global_ranks_(config.global_ranks),
      deaths_(config.deaths),
      context_(std::move(context)),
      control_(control),
      failure_board_(failure_board),
      wake_event_(wake_event),
      losses_(config.global_ranks.size()),
      copy_room_(config.global_ranks.size()) {}

std::unique_ptr<Transfer> Messages::Start(Message message) {
  const WithoutSigpipe without_sigpipe;
  auto shared = std::make_shared<Message>(std::move(message));
  auto handle = std::make_unique<Handle>(*this, shared);
  MutexLock lock(mutex_);
  shared->began = last_progress_ = Now();
  if (stopped_) {
    Finish(*shared, *stopped_);
    return handle;
  }
  if (shared->is_send) {
    auto copy = CopyOf(*shared);
    if (copy != nullptr) Finish(*shared);
    open_.push_back(copy != nullptr ? copy : shared);
    SendOffer(*open_.back());
  } else {
    open_.push_back(shared);
    auto fits = [&](const Offer& offer) {
      return offer.message.tag == shared->envelope.tag &&
             (!shared->peer || *shared->peer == offer.peer);
    };
    auto offer = std::find_if(unmatched_.begin(), unmatched_.end(), fits);
    if (offer != unmatched_.end()) {
      Match(*shared, *offer);
      unmatched_.erase(offer);
    }
  }
  RemoveOver();
  wake_event_.Set();
  return handle;
}

std::shared_ptr<Messages::Message> Messages::CopyOf(const Message& send) {
  // These sends are to report the error.
  if (deaths_.has_death() || LossOf(*send.peer) != nullptr) return nullptr;
  if (!copy_room_.Take(*send.peer, send.bytes)) return nullptr;
  auto copy = std::make_shared<Message>(Message{.is_send = true,
                                                .data = nullptr,
                                                .bytes = send.bytes,
                                                .envelope = send.envelope,
                                                .peer = send.peer,
                                                .began = send.began,
                                                .is_copy = true,
                                                .copied = {send.data, send.data + send.bytes}});
  copy->data = copy->copied.data();
  return copy;
}

void Messages::WaitForCopies(milliseconds timeout) {
  TimePoint deadline = Now() + timeout;
  MutexLock lock(mutex_);
  while (copy_room_.copies() > 0 && ended_.WaitUntil(mutex_, deadline)) {
  }
  if (copy_room_.copies() == 0) return;
  LogWarn("Destroy: " + std::to_string(copy_room_.copies()) + " messages to " +
          RanksInWords(copy_room_.Receivers(global_ranks_)) + " are lost: no Recv in " +
          FormatSeconds(timeout));
}

TimePoint Messages::Poll(TimePoint now) {
  TimePoint next = MoveOn(now);
  FindLossReasons();
  return next;
}

TimePoint Messages::MoveOn(TimePoint now) {
  MutexLock lock(mutex_);
  // Receive even if no message is under way, because unread messages hide a
  // farewell and a loss behind them.
  if (Receive()) last_progress_ = now;
  if (open_.empty()) return TimePoint::max();
  // Check even if data has arrived, because a peer that sends continuously
  // would otherwise hide a death.
  if (now >= next_check_) {
    CheckForLosses();
    next_check_ = now + kCheckInterval;
  }
  RemoveOver();
  if (open_.empty()) return TimePoint::max();
  auto quiet = std::chrono::duration_cast<microseconds>(now - last_progress_);
  if (quiet < kBusyFor) return now;
  return now + std::clamp(quiet / 4, kMinSleep, kMaxSleep);
}

// Asks the store without mutex_, so that Test never waits for the store.
void Messages::FindLossReasons() {
  std::vector<std::pair<size_t, Loss>> unexplained;
  {
    MutexLock lock(mutex_);
    for (size_t peer = 0; peer < losses_.size(); ++peer) {
      const auto& loss = losses_[peer];
      if (loss && !loss->error) unexplained.emplace_back(peer, *loss);
    }
  }
  for (const auto& [peer, loss] : unexplained) {
    auto error = failure_board_.WhyLost(static_cast<int>(peer), loss.why, loss.since);
    if (!error) continue;
    MutexLock lock(mutex_);
    losses_[peer]->error = std::move(error);
    next_check_ = {};
  }
}

void Messages::Stop(const Error& why) {
  MutexLock lock(mutex_);
  Error end = why;
  // kTimeout of a transfer would mean that it continues.
  if (end.code == ErrorCode::kTimeout) end.code = ErrorCode::kCancelled;
  if (!stopped_) stopped_ = end;
  for (const auto& message : open_) Finish(*message, end);
  open_.clear();
  unmatched_.clear();
}

// Processes all messages that have arrived. Returns whether there were any.
bool Messages::Receive() {
  bool any = false;
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == control_.rank()) continue;
    while (auto message = control_.Receive(peer)) {
      any = true;
      switch (message->kind) {
        case ControlMessage::Kind::kHello:
        case ControlMessage::Kind::kFarewell:  // never returned by Receive
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

void Messages::SendOffer(Message& send) {
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
    Match(*message, offer);
    return;
  }
  unmatched_.push_back(offer);
}

void Messages::Match(Message& receive, const Offer& offer) {
  const ControlMessage& message = offer.message;
  receive.matched = true;
  receive.peer = offer.peer;
  receive.id = message.id;
  bool same_dtype = message.dtype == static_cast<uint64_t>(receive.envelope.dtype);
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
  Finish(receive,
         MismatchError(receive, static_cast<DType>(offer.message.dtype), offer.message.bytes));
}

void Messages::OnAccept(int peer, const ControlMessage& message) {
  auto send = Find(true, peer, message.id);
  if (!send) return;  // stopped meanwhile
  try {
    send->buffer = context_->createUnboundBuffer(send->data, send->bytes);
    send->buffer->send(peer, DataSlot(message.id));
  } catch (const std::exception& exception) {
    return Lose(peer, exception.what());
  }
  control_.Send(peer, {.kind = ControlMessage::Kind::kSent, .id = message.id});
}

void Messages::OnSent(int peer, const ControlMessage& message) {
  auto receive = Find(false, peer, message.id);
  if (!receive) return;
  try {
    receive->buffer->waitRecv(std::chrono::seconds(10));  // returns at once: data came first
  } catch (const std::exception& exception) {
    return Lose(peer, exception.what());
  }
  control_.Send(peer, {.kind = ControlMessage::Kind::kEnd, .id = message.id});
  Finish(*receive);
}

void Messages::OnEnd(int peer, const ControlMessage& message) {
  auto send = Find(true, peer, message.id);
  if (!send) return;
  if (message.ok != 0) {
    Finish(*send);
  } else {
    Finish(*send, MismatchError(*send, static_cast<DType>(message.dtype), message.bytes));
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

void Messages::CheckForLosses() {
  auto report = failure_board_.FailureIn(FailureBoard::kAllCalls);
  for (const auto& message : open_) {
    if (message->over) continue;
    const Loss* loss = LossOf(*message);
    auto error = report || loss == nullptr ? report : loss->error;
    if (!error && deaths_.has_death()) error = deaths_.ErrorSince(message->began);
    if (error) Finish(*message, error);
  }
}

// Returns the loss of the message's peer. A receive from any rank is lost when
// all ranks are lost; then returns the first loss.
const Messages::Loss* Messages::LossOf(const Message& message) {
  if (message.peer) return LossOf(*message.peer);
  const Loss* first = nullptr;  // stays null in a group of one
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == control_.rank()) continue;
    const Loss* loss = LossOf(peer);
    if (loss == nullptr) return nullptr;
    if (first == nullptr) first = loss;
  }
  return first;
}

const Messages::Loss* Messages::LossOf(int peer) {
  auto& loss = losses_[static_cast<size_t>(peer)];
  if (!loss) {
    auto why = control_.Lost(peer);
    if (!why) return nullptr;
    loss = Loss{.since = Now(), .why = *why, .error = {}};
  }
  return &*loss;
}

// Records a loss. The messages of `peer` end when the reason is known.
void Messages::Lose(int peer, const std::string& why) {
  auto& loss = losses_[static_cast<size_t>(peer)];
  if (!loss) loss = Loss{.since = Now(), .why = PlainText(why), .error = {}};
}

void Messages::Finish(Message& message, std::optional<Error> error) {
  if (message.is_copy && !message.over) copy_room_.Return(*message.peer, message.bytes);
  message.buffer.reset();  // Gloo does not touch the block afterwards
  message.error = std::move(error);
  message.over = true;
  ended_.NotifyAll();
}

void Messages::RemoveOver() {
  open_.remove_if([](const auto& message) { return message->over; });
}

Error Messages::MismatchError(const Message& message, DType other, uint64_t other_bytes) const {
  auto name = [this](int rank) { return RanksInWords({global_ranks_[static_cast<size_t>(rank)]}); };
  MessageSide here{name(control_.rank()), message.envelope.dtype, message.bytes};
  MessageSide there{name(*message.peer), other, other_bytes};
  return {ErrorCode::kInvalid, message.is_send
                                   ? DescribeMismatch(message.envelope.tag, here, there)
                                   : DescribeMismatch(message.envelope.tag, there, here)};
}

}  // namespace rankrun::comm::gloo
