#include "comm/shm/inbox.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace rankrun::comm::shm {
namespace {

// Bytes after which room is freed, so that the sender can continue during the
// copy.
constexpr size_t kChunk = 16 * 1024;

}  // namespace

void Inbox::AddSource(std::unique_ptr<ChannelReader> reader) {
  Source source;
  source.reader = std::move(reader);
  sources_.push_back(std::move(source));
}

void Inbox::Post(PendingRecv& receiving) {
  const auto unexpected =
      std::find_if(unexpected_.begin(), unexpected_.end(), [&](const UnexpectedMessage& message) {
        return Matches(receiving, message.source, message.header.tag);
      });
  if (unexpected != unexpected_.end()) {
    Accept(receiving, unexpected);
  } else {
    posted_.push_back(&receiving);
  }
}

void Inbox::Accept(PendingRecv& receiving, std::list<UnexpectedMessage>::iterator unexpected) {
  UnexpectedMessage message = std::move(*unexpected);
  Source& from = At(message.source);
  unexpected_.erase(unexpected);
  if (!message.whole) from.unexpected = nullptr;
  size_t got = message.whole ? message.header.bytes : from.got;
  if (!Fits(receiving, message.source, message.header)) return;
  if (got > 0) std::memcpy(receiving.data.data, message.data.get(), got);
  if (!message.whole) {
    from.receiving = &receiving;
    return;
  }
  receiving.source = message.source;
  receiving.Finish({});
}

// Checks size and type of a message. If they differ, the receive fails, the
// message is dropped, and the sender gets an error if it still sends.
bool Inbox::Fits(PendingRecv& receiving, int source, const MessageHeader& header) {
  size_t bytes = receiving.data.bytes;
  DType dtype = receiving.envelope.dtype;
  if (header.bytes == bytes && header.dtype == static_cast<uint64_t>(dtype)) return true;
  Source& from = At(source);
  if (from.under_way && from.header.number == header.number) {
    ChannelState& state = from.reader->state();
    state.wanted_bytes = bytes;
    state.wanted_dtype = static_cast<uint64_t>(dtype);
    state.refused.store(header.number, std::memory_order_release);
  }
  receiving.source = source;
  receiving.Finish(Error{ErrorCode::kInvalid, "the message from " + name_of_(source) + " has " +
                                                  MessageText(header) + ": want " +
                                                  WantedText(header, bytes, dtype)});
  return false;
}

bool Inbox::Take() {
  bool moved = false;
  for (size_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source].reader) moved |= TakeFrom(static_cast<int>(source));
  }
  return moved;
}

bool Inbox::TakeFrom(int source) {
  Source& from = At(source);
  size_t budget = from.reader->capacity();
  while (budget > 0) {
    size_t ready = from.reader->Ready();
    if (ready == 0) break;
    if (!from.under_way) {
      Open(source);
      budget -= kGrain;
    } else {
      budget -= TakePart(from, std::min({ready, budget, kChunk}));
    }
    if (failure_) return true;
    if (from.got == from.header.bytes) Close(source);
  }
  if (from.reader->damaged()) failure_ = DamageOf(name_of_(source));
  from.reader->Publish();
  return budget < from.reader->capacity();
}

void Inbox::Open(int source) {
  Source& from = At(source);
  from.reader->Read(&from.header, sizeof from.header);
  from.got = 0;
  from.under_way = true;
  auto waiting = std::find_if(posted_.begin(), posted_.end(), [&](const PendingRecv* posted) {
    return Matches(*posted, source, from.header.tag);
  });
  if (waiting != posted_.end()) {
    PendingRecv& receiving = **waiting;
    posted_.erase(waiting);
    if (Fits(receiving, source, from.header)) from.receiving = &receiving;
    return;
  }
  std::unique_ptr<std::byte[]> data(new (std::nothrow) std::byte[from.header.bytes]);
  if (!data) {
    failure_ = Error{ErrorCode::kSystem, "no memory for the message from " + name_of_(source) +
                                             " of " + MessageText(from.header) +
                                             ", which this rank does not wait for yet"};
    return;
  }
  unexpected_.push_back(UnexpectedMessage{
      .source = source, .header = from.header, .data = std::move(data), .whole = false});
  from.unexpected = &unexpected_.back();
}

// Returns the number of channel bytes that were read.
size_t Inbox::TakePart(Source& from, size_t most) {
  size_t bytes = std::min(most, from.header.bytes - from.got);
  std::byte* place = nullptr;
  if (from.receiving != nullptr) place = from.receiving->data.data + from.got;
  if (from.unexpected != nullptr) place = from.unexpected->data.get() + from.got;
  from.reader->Read(place, bytes);
  from.got += bytes;
  if (bytes == kChunk) from.reader->Publish();
  return SegmentLayout::RoundUp(bytes, kGrain);
}

void Inbox::Close(int source) {
  Source& from = At(source);
  from.under_way = false;
  if (UnexpectedMessage* unexpected = std::exchange(from.unexpected, nullptr)) {
    unexpected->whole = true;
  }
  PendingRecv* receiving = std::exchange(from.receiving, nullptr);
  if (receiving == nullptr) return;
  receiving->source = source;
  receiving->Finish({});
}

void Inbox::Forget(const PendingRecv& receiving) {
  posted_.remove(const_cast<PendingRecv*>(&receiving));
  for (Source& from : sources_) {
    if (from.receiving == &receiving) from.receiving = nullptr;
  }
}

void Inbox::EndAll(const Error& error) {
  std::list<PendingRecv*> ended = std::exchange(posted_, {});
  for (Source& from : sources_) {
    if (from.receiving != nullptr) ended.push_back(std::exchange(from.receiving, nullptr));
  }
  for (PendingRecv* receiving : ended) receiving->Finish(error);
}

std::optional<UnexpectedEnvelope> Inbox::FirstUnexpected(std::optional<int> source) const {
  for (const UnexpectedMessage& unexpected : unexpected_) {
    if (source.value_or(unexpected.source) == unexpected.source) {
      return UnexpectedEnvelope{.source = unexpected.source, .tag = unexpected.header.tag};
    }
  }
  return std::nullopt;
}

bool Inbox::Busy() const {
  return !posted_.empty() || std::any_of(sources_.begin(), sources_.end(),
                                         [](const Source& from) { return from.under_way; });
}

}  // namespace rankrun::comm::shm
