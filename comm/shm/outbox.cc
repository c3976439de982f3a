#include "comm/shm/outbox.h"

#include <algorithm>
#include <utility>

namespace rankrun::comm::shm {
namespace {

// Bytes after which data is published, so that the receiver can copy it
// meanwhile.
constexpr size_t kChunk = 16 * 1024;

}  // namespace

void Outbox::AddDestination(std::unique_ptr<ChannelWriter> writer) {
  Destination to;
  to.writer = std::move(writer);
  destinations_.push_back(std::move(to));
}

void Outbox::Post(PendingSend& sending) {
  Destination& to = destinations_[static_cast<size_t>(sending.destination)];
  to.queue.push_back(&sending);
  ++waiting_;
  if (to.queue.size() == 1) PutTo(to);
}

bool Outbox::Put() {
  bool moved = false;
  if (waiting_ == 0) return moved;
  for (Destination& to : destinations_) {
    if (!to.queue.empty()) moved |= PutTo(to);
  }
  return moved;
}

bool Outbox::PutTo(Destination& to) {
  if (to.broken) return false;
  bool ended = EndIfRefused(to);
  size_t budget = to.writer->capacity();
  size_t room = 0;
  while (budget > 0 && !to.queue.empty() && (room = to.writer->Room()) > 0) {
    if (!to.begun && to.owed == 0) {
      Begin(to);
      budget -= kGrain;
      room -= kGrain;
    }
    size_t most = std::min({room, budget, kChunk});
    budget -= most;
    if (!PutPart(to, most)) break;
  }
  if (to.writer->damaged()) failure_ = DamageOf(name_of_(to.queue.front()->destination));
  to.writer->Publish();
  return ended || budget < to.writer->capacity();
}

void Outbox::Begin(Destination& to) {
  const PendingSend& sending = *to.queue.front();
  MessageHeader header{.tag = sending.envelope.tag,
                       .bytes = sending.data.bytes,
                       .dtype = static_cast<uint64_t>(sending.envelope.dtype),
                       .number = ++to.messages};
  to.writer->Write(&header, sizeof header);
  to.begun = true;
  to.done = 0;
}

bool Outbox::PutPart(Destination& to, size_t most) {
  if (to.owed > 0) {
    size_t bytes = std::min(most, to.owed);
    to.writer->Write(nullptr, bytes);
    to.owed -= bytes;
    return true;
  }
  if (EndIfRefused(to)) return true;
  const PendingSend& sending = *to.queue.front();
  size_t bytes = std::min(most, sending.data.bytes - to.done);
  to.writer->Write(sending.data.data + to.done, bytes);
  to.done += bytes;
  if (to.done < sending.data.bytes) {
    if (bytes == kChunk) to.writer->Publish();
    return most > 0;
  }
  EndFirst(to, {});
  return true;
}

void Outbox::EndFirst(Destination& to, std::optional<Error> error) {
  PendingSend& sending = *to.queue.front();
  to.begun = false;
  to.queue.pop_front();
  --waiting_;
  sending.Finish(std::move(error));
}

// Called before the last byte is published, because only until then a refusal
// can belong to this message. Does not wait for room: the receiver, which has
// failed, may never make any.
bool Outbox::EndIfRefused(Destination& to) {
  if (!to.begun) return false;
  std::optional<Error> refusal = Refusal(to);
  if (!refusal) return false;
  to.owed = to.queue.front()->data.bytes - to.done;
  EndFirst(to, std::move(refusal));
  return true;
}

std::optional<Error> Outbox::Refusal(const Destination& to) const {
  const ChannelState& state = to.writer->state();
  if (state.refused.load(std::memory_order_acquire) != to.messages) return std::nullopt;
  const PendingSend& sending = *to.queue.front();
  MessageHeader header{.tag = sending.envelope.tag,
                       .bytes = sending.data.bytes,
                       .dtype = static_cast<uint64_t>(sending.envelope.dtype),
                       .number = to.messages};
  return Error{ErrorCode::kInvalid,
               name_of_(sending.destination) + " refused " + MessageText(header) + ": it expects " +
                   WantedText(header, state.wanted_bytes, static_cast<DType>(state.wanted_dtype))};
}

void Outbox::Forget(const PendingSend& sending) {
  Destination& to = destinations_[static_cast<size_t>(sending.destination)];
  auto found = std::find(to.queue.begin(), to.queue.end(), &sending);
  if (found == to.queue.end()) return;
  if (found == to.queue.begin() && to.begun) to.broken = true;
  to.queue.erase(found);
  --waiting_;
}

void Outbox::EndAll(const Error& error) {
  std::deque<PendingSend*> ended;
  for (Destination& to : destinations_) {
    to.broken |= to.begun;
    ended.insert(ended.end(), to.queue.begin(), to.queue.end());
    to.queue.clear();
  }
  waiting_ = 0;
  for (PendingSend* sending : ended) sending->Finish(error);
}

}  // namespace rankrun::comm::shm
