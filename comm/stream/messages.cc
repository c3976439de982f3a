#include "comm/stream/messages.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/stream/limits.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

// The caller's handle of a message.
class Messages::Handle final : public Transfer {
 public:
  Handle(Messages& messages, SharedMessage message)
      : messages_(messages), message_(std::move(message)) {}

  bool Test() override {
    MutexLock lock(messages_.control_.mutex());
    return Look();
  }

  Result<void> Wait(milliseconds timeout) override {
    TimePoint deadline = Now() + std::min<milliseconds>(timeout, std::chrono::hours(8760));
    for (int round = 0;; ++round) {
      {
        MutexLock lock(messages_.control_.mutex());
        if (Look()) return message_->error ? Result<void>(*message_->error) : Result<void>();
      }
      if (round < messages_.patience_.polls && timeout > milliseconds(0)) continue;
      TimePoint now = Now();
      if (now >= deadline) {
        return Error{ErrorCode::kTimeout,
                     "not complete after " + std::to_string(timeout.count()) + " ms"};
      }
      Rest(round, std::chrono::ceil<milliseconds>(deadline - now));
    }
  }

  int source() const override { return message_->is_send ? -1 : message_->peer.value_or(-1); }

  std::optional<UnexpectedEnvelope> FirstUnexpected() override {
    if (message_->is_send) return std::nullopt;
    MutexLock lock(messages_.control_.mutex());
    for (const Unexpected& unexpected : messages_.unexpected_) {
      if (unexpected.is_taken || message_->peer.value_or(unexpected.source) != unexpected.source) {
        continue;
      }
      return UnexpectedEnvelope{.source = unexpected.source, .tag = unexpected.header.tag};
    }
    return std::nullopt;
  }

 private:
  // Moves data; returns whether the message is over.
  bool Look() REQUIRES(messages_.control_.mutex()) {
    if (!message_->over && !messages_.control_.Move()) messages_.CheckForEnd(*message_);
    return message_->over;
  }

  void Rest(int round, milliseconds left) {
    if (round < messages_.patience_.polls + messages_.patience_.yields) {
      sched_yield();
      return;
    }
    pollfd wait{.fd = messages_.control_.fd(), .events = POLLIN, .revents = 0};
    poll(&wait, 1, static_cast<int>(std::min(left, Patience::kSlice).count()));
  }

  Messages& messages_;
  const SharedMessage message_;  // shared with the list of those under way
};

Messages::Messages(const BackendConfig& config, Control& control, const Patience& patience)
    : control_(control),
      patience_(patience),
      deaths_(config.deaths),
      arriving_(config.global_ranks.size()) {}

std::unique_ptr<Transfer> Messages::StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) {
  return Start({.is_send = true,
                .data = const_cast<std::byte*>(data.data),  // only read
                .bytes = data.bytes,
                .envelope = envelope,
                .peer = destination});
}

std::unique_ptr<Transfer> Messages::StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) {
  return Start({.is_send = false,
                .data = data.data,
                .bytes = data.bytes,
                .envelope = envelope,
                .peer = source});
}

std::unique_ptr<Transfer> Messages::Start(Message message) {
  auto shared = std::make_shared<Message>(std::move(message));
  auto handle = std::make_unique<Handle>(*this, shared);
  MutexLock lock(control_.mutex());
  shared->began = Now();
  open_.push_back(shared);
  if (const auto& ended = control_.ended()) {
    Finish(*shared, *ended);
  } else if (shared->is_send) {
    SendFirst(shared);
  } else {
    TakeUnexpected(shared);
  }
  return handle;
}

void Messages::Stop(const Error& why) {
  MutexLock lock(control_.mutex());
  while (!open_.empty()) Finish(*open_.front(), why);
  unexpected_.clear();
}

void Messages::SendFirst(const SharedMessage& send) {
  send->id = ++last_id_;
  send->matched = true;
  bool is_short = send->bytes <= kMaxEagerBytes;
  OutgoingFrame frame{.header = {.kind = is_short ? FrameKind::kMessage : FrameKind::kOffer,
                                 .dtype = static_cast<uint8_t>(send->envelope.dtype),
                                 .number = send->id,
                                 .count = send->bytes,
                                 .tag = send->envelope.tag}};
  if (is_short) {
    frame.data = {send->data, send->bytes};
    frame.context = send;
  }
  control_.Send(*send->peer, std::move(frame));
}

void Messages::SendPiece(const SharedMessage& send) {
  control_.Send(*send->peer, {.header = {.kind = FrameKind::kMessageData, .number = send->id},
                              .data = {send->data + send->moved,
                                       std::min(kPieceBytes, send->bytes - send->moved)},
                              .context = send});
}

void Messages::OnWritten(int, const OutgoingFrame& frame) NO_THREAD_SAFETY_ANALYSIS {
  // Not analysed: the control connections call this with the mutex held.
  auto send = std::static_pointer_cast<Message>(frame.context);
  if (send->over) return;
  send->moved += frame.data.bytes;
  if (send->moved == send->bytes) {
    Finish(*send);
  } else {
    SendPiece(send);
  }
}

std::byte* Messages::SpaceFor(int peer, const FrameHeader& header) NO_THREAD_SAFETY_ANALYSIS {
  // Not analysed: as OnWritten.
  if (header.kind == FrameKind::kMessage) return BeginMessage(peer, header);
  auto receive = Find(false, peer, header.number);
  if (receive == nullptr || receive->bytes - receive->moved < header.bytes) return nullptr;
  return receive->data + receive->moved;
}

void Messages::OnFrame(int peer, const FrameHeader& header) NO_THREAD_SAFETY_ANALYSIS {
  // Not analysed: as OnWritten.
  switch (header.kind) {
    case FrameKind::kMessage:
      if (header.bytes == 0) BeginMessage(peer, header);
      return CompleteMessage(peer);
    case FrameKind::kOffer:
      return OnOffer(peer, header);
    case FrameKind::kAccept:
    case FrameKind::kRefuse:
      return OnAnswer(peer, header);
    default:
      return OnPiece(peer, header);
  }
}

// Returns memory for the data of a short message; null: the message is refused.
std::byte* Messages::BeginMessage(int peer, const FrameHeader& header) {
  if (SharedMessage receive = TakeReceive(peer, header.tag)) {
    if (!Match(*receive, peer, header)) return nullptr;
    arriving_[static_cast<size_t>(peer)] = receive;
    return receive->data;
  }
  unexpected_.push_back({.source = peer, .header = header});
  unexpected_.back().data.resize(header.bytes);
  return unexpected_.back().data.data();
}

void Messages::CompleteMessage(int peer) {
  if (SharedMessage receive = std::exchange(arriving_[static_cast<size_t>(peer)], nullptr)) {
    if (!receive->over) Finish(*receive);
    return;
  }
  auto arrived = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& one) {
    return one.source == peer && !one.is_complete && one.header.kind == FrameKind::kMessage;
  });
  if (arrived == unexpected_.end()) return;  // its receive refused it
  arrived->is_complete = true;
  if (!arrived->is_taken) return;
  if (SharedMessage receive = arrived->receive; receive != nullptr && !receive->over) {
    std::copy(arrived->data.begin(), arrived->data.end(), receive->data);
    Finish(*receive);
  }
  unexpected_.erase(arrived);
}

Messages::SharedMessage Messages::TakeReceive(int source, uint64_t tag) {
  for (const SharedMessage& message : open_) {
    if (message->is_send || message->matched || message->envelope.tag != tag) continue;
    if (message->peer.value_or(source) == source) return message;
  }
  return nullptr;
}

// Matches a new receive with the first message that has arrived for it.
void Messages::TakeUnexpected(const SharedMessage& receive) {
  auto found = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& one) {
    return !one.is_taken && one.header.tag == receive->envelope.tag &&
           receive->peer.value_or(one.source) == one.source;
  });
  if (found == unexpected_.end()) return;
  if (found->header.kind == FrameKind::kOffer) {
    Answer(receive, found->source, found->header);
    unexpected_.erase(found);
    return;
  }
  bool fits = Match(*receive, found->source, found->header);
  found->is_taken = true;
  if (!found->is_complete) {
    if (fits) found->receive = receive;
    return;
  }
  if (fits) {
    std::copy(found->data.begin(), found->data.end(), receive->data);
    Finish(*receive);
  }
  unexpected_.erase(found);
}

bool Messages::Match(Message& receive, int source, const FrameHeader& header) {
  receive.matched = true;
  receive.peer = source;
  receive.id = header.number;
  bool same_dtype = header.dtype == static_cast<uint8_t>(receive.envelope.dtype);
  if (same_dtype && header.count == receive.bytes) return true;
  Finish(receive, MismatchError(receive, static_cast<DType>(header.dtype), header.count));
  return false;
}

void Messages::OnOffer(int peer, const FrameHeader& header) {
  if (SharedMessage receive = TakeReceive(peer, header.tag)) {
    Answer(receive, peer, header);
  } else {
    unexpected_.push_back({.source = peer, .header = header, .is_complete = true});
  }
}

void Messages::Answer(const SharedMessage& receive, int source, const FrameHeader& offer) {
  bool fits = Match(*receive, source, offer);
  control_.Send(source, {.header = {.kind = fits ? FrameKind::kAccept : FrameKind::kRefuse,
                                    .dtype = static_cast<uint8_t>(receive->envelope.dtype),
                                    .number = offer.number,
                                    .count = receive->bytes}});
}

void Messages::OnAnswer(int peer, const FrameHeader& header) {
  SharedMessage send = Find(true, peer, header.number);
  if (send == nullptr) return;  // stopped meanwhile
  if (header.kind == FrameKind::kAccept) {
    SendPiece(send);
  } else {
    Finish(*send, MismatchError(*send, static_cast<DType>(header.dtype), header.count));
  }
}

void Messages::OnPiece(int peer, const FrameHeader& header) {
  SharedMessage receive = Find(false, peer, header.number);
  if (receive == nullptr) return;
  receive->moved += header.bytes;
  if (receive->moved >= receive->bytes) Finish(*receive);
}

Messages::SharedMessage Messages::Find(bool is_send, int peer, uint64_t id) {
  for (const SharedMessage& message : open_) {
    if (message->is_send == is_send && message->matched && message->id == id &&
        message->peer == peer) {
      return message;
    }
  }
  return nullptr;
}

void Messages::Finish(Message& message, std::optional<Error> error) {
  if (error && message.bytes > 0) control_.Release(message.data, message.bytes);
  message.error = std::move(error);
  message.over = true;
  open_.remove_if([&](const SharedMessage& one) { return one.get() == &message; });
}

void Messages::CheckForEnd(Message& message) {
  if (!control_.alarmed() && !deaths_.has_death()) return;
  if (auto end = control_.FindEnd(message.began)) {
    Finish(message, std::move(end));
  } else if (auto loss = LossFor(message)) {
    Finish(message, std::move(loss));
  }
}

// A receive from any rank is lost when all ranks are.
std::optional<Error> Messages::LossFor(const Message& message) {
  if (message.peer) return control_.FindLoss(*message.peer);
  std::optional<Error> first;
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (peer == control_.rank()) continue;
    auto loss = control_.FindLoss(peer);
    if (!loss) return std::nullopt;
    if (!first) first = std::move(loss);
  }
  return first;
}

Error Messages::MismatchError(const Message& message, DType other, uint64_t other_bytes) const {
  MessageSide here{control_.NameOf(control_.rank()), message.envelope.dtype, message.bytes};
  MessageSide there{control_.NameOf(*message.peer), other, other_bytes};
  return {ErrorCode::kInvalid, message.is_send
                                   ? DescribeMismatch(message.envelope.tag, here, there)
                                   : DescribeMismatch(message.envelope.tag, there, here)};
}

}  // namespace rankrun::comm::stream
