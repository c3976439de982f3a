#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/shm/futex.h"
#include "comm/shm/layout.h"

namespace rankrun::comm::shm {

// Part of the shared memory for messages, by offset: the bell of each rank, the
// state of each channel (channels to one rank lie together), the ring of each
// channel. There is one channel per ordered pair of ranks. Pages of unused
// channels are never touched. Initially all zero.

// Futex on which a rank sleeps. Other ranks ring it after they have written a
// message for it or freed room.
struct alignas(kApart) Bell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleepers;

  // Needs no fence instruction: a rank that goes to sleep calls PassFence().
  void Ring() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_relaxed) == 0) return;
    rings.fetch_add(1, std::memory_order_release);
    FutexWakeAll(FutexOf(rings));
  }
};

// Positions count bytes since the creation of the channel, in multiples of
// kGrain.
struct alignas(kApart) ChannelState {
  std::atomic<uint64_t> written;               // set by the sender
  alignas(kApart) std::atomic<uint64_t> read;  // set by the receiver
  // Number (from 1) of the last message that the receiver refused. The message
  // may still be in transit. wanted_bytes and wanted_dtype are written before.
  std::atomic<uint64_t> refused;
  uint64_t wanted_bytes;
  uint64_t wanted_dtype;
};

// Header of each message; its bytes follow, padded to whole grains.
struct MessageHeader {
  uint64_t tag;
  uint64_t bytes;
  uint64_t dtype;
  uint64_t number;  // of the channel's messages, from 1
};
constexpr size_t kGrain = sizeof(MessageHeader);  // so that a header never wraps

struct MessageLayout {
  int world_size;

  // Size of one ring, a power of two.
  size_t RingBytes() const;
  size_t BellAt(int rank) const { return Index(rank) * sizeof(Bell); }
  size_t StateAt(int sender, int receiver) const {
    return Index(world_size) * sizeof(Bell) + Channel(sender, receiver) * sizeof(ChannelState);
  }
  size_t RingAt(int sender, int receiver) const {
    return SegmentLayout::RoundUp(StateAt(0, world_size), SegmentLayout::kPage) +
           Channel(sender, receiver) * RingBytes();
  }
  size_t size() const { return RingAt(0, world_size); }

 private:
  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  size_t Channel(int sender, int receiver) const {
    return Index(receiver) * Index(world_size) + Index(sender);
  }
};

// Memory of one channel, as one of its two ranks uses it.
struct ChannelPlace {
  ChannelState& state;
  std::byte* ring;
  size_t ring_bytes;
  Bell& other_end;  // bell of the other rank
};

// Sender's end of a channel.
// Thread: one at a time.
class ChannelWriter {
 public:
  explicit ChannelWriter(const ChannelPlace& place) : place_(place) {}

  // Returns the free bytes, a multiple of kGrain; 0 if the channel is damaged.
  size_t Room();
  // Writes at most Room() bytes; Publish() makes them readable. Null `data`
  // writes undefined bytes.
  void Write(const void* data, size_t bytes);
  void Publish();
  // Whether the receiver's position has been one that no receiver can be at.
  bool damaged() const { return damaged_; }
  ChannelState& state() const { return place_.state; }
  size_t capacity() const { return place_.ring_bytes; }

 private:
  const ChannelPlace place_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  uint64_t read_ = 0;  // last known position of the receiver
  bool damaged_ = false;
};

// Receiver's end of a channel.
// Thread: one at a time.
class ChannelReader {
 public:
  explicit ChannelReader(const ChannelPlace& place) : place_(place) {}

  // Returns the bytes that can be read, a multiple of kGrain; 0 if the channel is
  // damaged.
  size_t Ready();
  // Reads at most Ready() bytes. Null `data` drops them.
  void Read(void* data, size_t bytes);
  // Frees the room of the bytes that were read.
  void Publish();
  // Whether the sender's position has been one that no sender can be at.
  bool damaged() const { return damaged_; }
  ChannelState& state() const { return place_.state; }
  size_t capacity() const { return place_.ring_bytes; }

 private:
  const ChannelPlace place_;
  uint64_t read_ = 0;
  uint64_t published_ = 0;
  uint64_t written_ = 0;  // last known position of the sender
  bool damaged_ = false;
};

}  // namespace rankrun::comm::shm
