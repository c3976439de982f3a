#include "comm/shm/inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankrun::comm {
namespace {

// The sender gets room back while the rest is copied.
constexpr std::size_t kChunk = 16 * 1024;

}  // namespace

void Inbox::AddSource(std::unique_ptr<ChannelReader> reader) {
  Source source;
  source.reader = std::move(reader);
  sources_.push_back(std::move(source));
}

void Inbox::Post(Receiving& receiving) {
  const auto parcel = std::find_if(parcels_.begin(), parcels_.end(), [&](const Parcel& kept) {
    return Matches(receiving, kept.source, kept.header.tag);
  });
  if (parcel != parcels_.end()) {
    Accept(receiving, parcel);
  } else {
    posted_.push_back(&receiving);
  }
}

void Inbox::Accept(Receiving& receiving, std::list<Parcel>::iterator parcel) {
  const Parcel kept = std::move(*parcel);
  Source& from = At(kept.source);
  parcels_.erase(parcel);
  if (!kept.whole) from.parcel = nullptr;
  const std::size_t got = kept.whole ? kept.header.bytes : from.got;
  if (!Fits(receiving, kept.source, kept.header)) return;
  if (got > 0) std::memcpy(receiving.data.data, kept.data.get(), got);
  if (!kept.whole) {
    from.receiving = &receiving;
    return;
  }
  receiving.source = kept.source;
  receiving.Finish({});
}

// If not, both sides learn it, if both still wait; the message is taken, and nobody gets it.
bool Inbox::Fits(Receiving& receiving, int source, const MessageHeader& header) {
  const std::size_t bytes = receiving.data.bytes;
  const DType dtype = receiving.envelope.dtype;
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
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source].reader) moved |= TakeFrom(static_cast<int>(source));
  }
  return moved;
}

bool Inbox::TakeFrom(int source) {
  Source& from = At(source);
  std::size_t budget = from.reader->capacity();
  while (budget > 0) {
    const std::size_t ready = from.reader->Ready();
    if (ready == 0) break;
    if (!from.under_way) {
      Open(source);
      budget -= kGrain;
    } else {
      budget -= TakePart(from, std::min({ready, budget, kChunk}));
    }
    if (from.got == from.header.bytes) Close(source);
  }
  from.reader->Publish();
  return budget < from.reader->capacity();
}

void Inbox::Open(int source) {
  Source& from = At(source);
  from.reader->Read(&from.header, sizeof from.header);
  from.got = 0;
  from.under_way = true;
  const auto waiting = std::find_if(posted_.begin(), posted_.end(), [&](const Receiving* posted) {
    return Matches(*posted, source, from.header.tag);
  });
  if (waiting != posted_.end()) {
    Receiving& receiving = **waiting;
    posted_.erase(waiting);
    if (Fits(receiving, source, from.header)) from.receiving = &receiving;
    return;
  }
  parcels_.push_back(Parcel{.source = source,
                            .header = from.header,
                            .data = std::make_unique_for_overwrite<std::byte[]>(from.header.bytes),
                            .whole = false});
  from.parcel = &parcels_.back();
}

// How much room in the channel that was.
std::size_t Inbox::TakePart(Source& from, std::size_t most) {
  const std::size_t bytes = std::min(most, from.header.bytes - from.got);
  std::byte* place = nullptr;
  if (from.receiving != nullptr) place = from.receiving->data.data + from.got;
  if (from.parcel != nullptr) place = from.parcel->data.get() + from.got;
  from.reader->Read(place, bytes);
  from.got += bytes;
  if (bytes == kChunk) from.reader->Publish();
  return SegmentLayout::RoundUp(bytes, kGrain);
}

void Inbox::Close(int source) {
  Source& from = At(source);
  from.under_way = false;
  if (Parcel* parcel = std::exchange(from.parcel, nullptr)) parcel->whole = true;
  Receiving* receiving = std::exchange(from.receiving, nullptr);
  if (receiving == nullptr) return;
  receiving->source = source;
  receiving->Finish({});
}

void Inbox::Forget(const Receiving& receiving) {
  posted_.remove(const_cast<Receiving*>(&receiving));
  for (Source& from : sources_) {
    if (from.receiving == &receiving) from.receiving = nullptr;
  }
}

void Inbox::EndAll(const Error& error) {
  std::list<Receiving*> ended = std::exchange(posted_, {});
  for (Source& from : sources_) {
    if (from.receiving != nullptr) ended.push_back(std::exchange(from.receiving, nullptr));
  }
  for (Receiving* receiving : ended) receiving->Finish(error);
}

std::optional<Unasked> Inbox::FirstUnasked(std::optional<int> source) const {
  for (const Parcel& parcel : parcels_) {
    if (source.value_or(parcel.source) == parcel.source) {
      return Unasked{.source = parcel.source, .tag = parcel.header.tag};
    }
  }
  return std::nullopt;
}

bool Inbox::Busy() const {
  return !posted_.empty() || std::any_of(sources_.begin(), sources_.end(),
                                         [](const Source& from) { return from.under_way; });
}

}  // namespace rankrun::comm
