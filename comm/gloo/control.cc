#include "comm/gloo/control.h"

#include <exception>

#include "base/clock.h"
#include "comm/core/time_left.h"
#include "comm/gloo/error_text.h"
#include "comm/gloo/send_aborter.h"

namespace rankrun::comm::gloo {
namespace {

// Time limit for data that has already arrived; Gloo reports it within
// microseconds.
constexpr std::chrono::seconds kNoWait{10};

// Reads the sequence that Gloo's thread writes. The write happens inside the
// kernel, so a sanitizer cannot see it. The acquire load makes all earlier
// bytes visible.
__attribute__((no_sanitize("thread"))) uint64_t SequenceIn(const ControlMessage& message) {
  return __atomic_load_n(&message.sequence, __ATOMIC_ACQUIRE);
}

// Throws if the connection is lost. Never waits.
void CheckConnection(GlooBuffer& buffer) {
  buffer.abortWaitRecv();  // the wait that follows returns at once
  buffer.waitRecv();
}

}  // namespace

Control::Control(std::shared_ptr<::gloo::Context> context)
    : context_(std::move(context)), lines_(static_cast<size_t>(context_->size)) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    for (Slot& slot : lines_[static_cast<size_t>(peer)].receives) {
      slot.buffer = context_->createUnboundBuffer(&slot.message, sizeof slot.message);
      Post(peer, slot);
    }
  }
}

void Control::Send(int peer, ControlMessage message) {
  MutexLock lock(mutex_);
  SendNow(peer, message);
}

void Control::SendNow(int peer, ControlMessage message) {
  Line& line = lines_[static_cast<size_t>(peer)];
  if (line.lost) return;
  message.seen = line.received_count;
  message.sequence = ++line.sent_count;
  auto slot = std::make_unique<Slot>();
  slot->message = message;
  slot->buffer = context_->createUnboundBuffer(&slot->message, sizeof slot->message);
  try {
    slot->buffer->send(peer, SlotOf(SlotUse::kControl, 0));
  } catch (const std::exception& exception) {
    line.closed = PlainText(exception.what());
    return;
  }
  line.sent.push_back(std::move(slot));
}

std::optional<ControlMessage> Control::Receive(int peer) {
  MutexLock lock(mutex_);
  Line& line = lines_[static_cast<size_t>(peer)];
  while (!line.lost) {
    TakeFarewell(line);
    Slot& slot = line.receives[line.received_count % kReceives];
    if (SequenceIn(slot.message) != line.received_count + 1) return std::nullopt;
    try {
      slot.buffer->waitRecv(kNoWait);
    } catch (const std::exception& exception) {
      line.lost = PlainText(exception.what());
      return std::nullopt;
    }
    ControlMessage message = slot.message;
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

// Records the next message if it is a farewell, and returns whether it is. The
// last farewell wins.
bool Control::TakeFarewell(Line& line) {
  const Slot& slot = line.receives[line.received_count % kReceives];
  if (SequenceIn(slot.message) != line.received_count + 1) return false;
  if (slot.message.kind != ControlMessage::Kind::kFarewell) return false;
  line.farewell = slot.message.payload.data();
  line.first_call = slot.message.id;
  return true;
}

void Control::SendFarewell(const std::string& text, uint64_t first_call) {
  ControlMessage farewell{.kind = ControlMessage::Kind::kFarewell, .id = first_call};
  text.copy(farewell.payload.data(), farewell.payload.size() - 1);
  MutexLock lock(mutex_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank()) SendNow(peer, farewell);
  }
}

std::optional<std::string> Control::Farewell(int peer) {
  MutexLock lock(mutex_);
  Line& line = lines_[static_cast<size_t>(peer)];
  TakeFarewell(line);
  return line.farewell;
}

uint64_t Control::FirstCallThatFails(int peer) {
  MutexLock lock(mutex_);
  return lines_[static_cast<size_t>(peer)].first_call;
}

std::optional<std::string> Control::Lost(int peer) {
  MutexLock lock(mutex_);
  Line& line = lines_[static_cast<size_t>(peer)];
  bool has_farewell = TakeFarewell(line);
  if (line.lost) return line.lost;
  // A message that arrived before the loss must be received first.
  const Slot& next = line.receives[line.received_count % kReceives];
  if (!has_farewell && SequenceIn(next.message) != 0) return std::nullopt;
  std::optional<std::string> why = line.closed ? line.closed : WhyClosed(line);
  // Messages may have arrived while it was looked for.
  if (why && !TakeFarewell(line) && SequenceIn(next.message) != 0) return std::nullopt;
  return line.lost = why;
}

// Returns why the connection is closed; no value: it is open. Never waits.
std::optional<std::string> Control::WhyClosed(Line& line) {
  for (Slot& slot : line.receives) {
    try {
      CheckConnection(*slot.buffer);
    } catch (const std::exception& exception) {
      return PlainText(exception.what());
    }
  }
  return std::nullopt;
}

std::optional<Control::SilentLoss> Control::FirstSilentLoss() {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    auto why = Lost(peer);
    if (why && !Farewell(peer)) return SilentLoss{.peer = peer, .why = *why};
  }
  return std::nullopt;
}

void Control::Flush(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  // Not analysed: the aborter calls this only while this thread waits, with the
  // mutex held.
  SendAborter aborter([this](int peer) NO_THREAD_SAFETY_ANALYSIS {
    Line& line = lines_[static_cast<size_t>(peer)];
    return WhyClosed(line).has_value();
  });
  for (int peer = 0; peer < ranks(); ++peer) {
    Line& line = lines_[static_cast<size_t>(peer)];
    for (auto& slot : line.sent) {
      if (line.lost) break;
      try {
        bool sent = aborter.Wait(*slot->buffer, peer, TimeLeft(deadline));
        if (!sent) line.lost = WhyClosed(line);
      } catch (const std::exception& exception) {
        line.lost = PlainText(exception.what());
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
    lines_[static_cast<size_t>(peer)].closed = PlainText(exception.what());
  }
}

}  // namespace rankrun::comm::gloo
