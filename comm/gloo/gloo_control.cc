#include "comm/gloo/gloo_control.h"

#include <exception>

#include "base/clock.h"
#include "comm/gloo/gloo_words.h"
#include "comm/gloo/send_aborter.h"
#include "comm/time_left.h"

namespace rankrun::comm {
namespace {

// By now it is there: for Gloo to say so takes microseconds.
constexpr std::chrono::seconds kNoWait{10};

// Gloo's thread writes it from inside the kernel, so nothing of it is seen by a
// sanitizer; the fence makes sure that what was written before it is seen, too.
__attribute__((no_sanitize("thread"))) uint64_t SequenceIn(const ControlMessage& message) {
  return __atomic_load_n(&message.sequence, __ATOMIC_ACQUIRE);
}

// Throws if the connection is lost; never waits.
void LookAt(GlooBuffer& buffer) {
  buffer.abortWaitRecv();  // the wait that follows returns at once
  buffer.waitRecv();
}

}  // namespace

Control::Control(std::shared_ptr<::gloo::Context> context)
    : context_(std::move(context)), lines_(static_cast<std::size_t>(context_->size)) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    for (Slot& slot : lines_[static_cast<std::size_t>(peer)].receives) {
      slot.buffer = context_->createUnboundBuffer(&slot.message, sizeof slot.message);
      Post(peer, slot);
    }
  }
}

void Control::Send(int peer, ControlMessage message) {
  std::lock_guard lock(mutex_);
  SendNow(peer, message);
}

void Control::SendNow(int peer, ControlMessage message) {
  Line& line = lines_[static_cast<std::size_t>(peer)];
  if (line.lost) return;
  message.seen = line.received_count;
  message.sequence = ++line.sent_count;
  auto slot = std::make_unique<Slot>();
  slot->message = message;
  slot->buffer = context_->createUnboundBuffer(&slot->message, sizeof slot->message);
  try {
    slot->buffer->send(peer, SlotOf(SlotUse::kControl, 0));
  } catch (const std::exception& exception) {
    line.closed = PlainWords(exception.what());
    return;
  }
  line.sent.push_back(std::move(slot));
}

std::optional<ControlMessage> Control::Receive(int peer) {
  std::lock_guard lock(mutex_);
  Line& line = lines_[static_cast<std::size_t>(peer)];
  while (!line.lost) {
    TakeFarewell(line);
    Slot& slot = line.receives[line.received_count % kReceives];
    if (SequenceIn(slot.message) != line.received_count + 1) return std::nullopt;
    try {
      slot.buffer->waitRecv(kNoWait);
    } catch (const std::exception& exception) {
      line.lost = PlainWords(exception.what());
      return std::nullopt;
    }
    const ControlMessage message = slot.message;
    line.received_count += 1;
    line.seen_count = message.seen;
    while (!line.sent.empty() && line.sent.front()->message.sequence <= line.seen_count) {
      line.sent.pop_front();
    }
    Post(peer, slot);
    if (message.kind != ControlMessage::Kind::kFarewell) return message;
  }
  return std::nullopt;
}

// The last stands, as who says it may go on. Whether the next that has come is one.
bool Control::TakeFarewell(Line& line) {
  const Slot& slot = line.receives[line.received_count % kReceives];
  if (SequenceIn(slot.message) != line.received_count + 1) return false;
  if (slot.message.kind != ControlMessage::Kind::kFarewell) return false;
  line.farewell = slot.message.payload.data();
  return true;
}

void Control::SayFarewell(const std::string& text) {
  ControlMessage farewell{.kind = ControlMessage::Kind::kFarewell};
  text.copy(farewell.payload.data(), farewell.payload.size() - 1);
  std::lock_guard lock(mutex_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank()) SendNow(peer, farewell);
  }
}

std::optional<std::string> Control::Farewell(int peer) {
  std::lock_guard lock(mutex_);
  Line& line = lines_[static_cast<std::size_t>(peer)];
  TakeFarewell(line);
  return line.farewell;
}

std::optional<std::string> Control::Lost(int peer) {
  std::lock_guard lock(mutex_);
  Line& line = lines_[static_cast<std::size_t>(peer)];
  const bool has_farewell = TakeFarewell(line);
  if (line.lost) return line.lost;
  // What has come in time is there to be received.
  const Slot& next = line.receives[line.received_count % kReceives];
  if (!has_farewell && SequenceIn(next.message) != 0) return std::nullopt;
  if (line.closed) return line.lost = line.closed;
  return line.lost = WhyClosed(line);
}

// Never waits.
std::optional<std::string> Control::WhyClosed(Line& line) {
  for (Slot& slot : line.receives) {
    try {
      LookAt(*slot.buffer);
    } catch (const std::exception& exception) {
      return PlainWords(exception.what());
    }
  }
  return std::nullopt;
}

void Control::Flush(std::chrono::milliseconds timeout) {
  std::lock_guard lock(mutex_);
  const TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  // Called only while this thread waits, which has the lock.
  SendAborter aborter([this](int peer) {
    Line& line = lines_[static_cast<std::size_t>(peer)];
    return WhyClosed(line).has_value();
  });
  for (int peer = 0; peer < ranks(); ++peer) {
    Line& line = lines_[static_cast<std::size_t>(peer)];
    for (auto& slot : line.sent) {
      if (line.lost) break;
      try {
        const bool sent = aborter.Wait(*slot->buffer, peer, TimeLeft(deadline));
        if (!sent) line.lost = WhyClosed(line);
      } catch (const std::exception& exception) {
        line.lost = PlainWords(exception.what());
      }
    }
    line.sent.clear();
  }
}

void Control::Post(int peer, Slot& slot) {
  slot.message.sequence = 0;
  try {
    slot.buffer->recv(peer, SlotOf(SlotUse::kControl, 0));
  } catch (const std::exception& exception) {
    lines_[static_cast<std::size_t>(peer)].closed = PlainWords(exception.what());
  }
}

}  // namespace rankrun::comm
