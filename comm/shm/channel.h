#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/shm/futex.h"
#include "comm/shm/layout.h"

namespace rankrun::comm {

// The part of the shared memory where messages pass, by offset: the bell of
// each rank, the state of each channel (those to one rank together), then the
// bytes of each. A channel is for one ordered pair of ranks; pages of those that
// are never used are never touched. All zero at first.

// What a rank sleeps on: others ring when they have written to it or made room.
struct alignas(kApart) Bell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleepers;

  // No fence: who goes to sleep has all processors pass one.
  void Ring() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_relaxed) == 0) return;
    rings.fetch_add(1, std::memory_order_release);
    FutexWakeAll(FutexOf(rings));
  }
};

// Positions are counts of bytes since the beginning, multiples of kGrain.
struct alignas(kApart) ChannelState {
  std::atomic<uint64_t> written;  // by the sender
  alignas(kApart) std::atomic<uint64_t> read;
  // The receiver does not want the message with this number (from 1), which may
  // still be under way; what it wants was written before.
  std::atomic<uint64_t> refused;
  uint64_t wanted_bytes;
  uint64_t wanted_dtype;
};

// In front of each message; its bytes follow, filled up to whole grains.
struct MessageHeader {
  uint64_t tag;
  uint64_t bytes;
  uint64_t dtype;
  uint64_t number;  // of the channel's messages, from 1
};
constexpr std::size_t kGrain = sizeof(MessageHeader);  // so that a header never wraps

struct MessageLayout {
  int world_size;

  // Of one channel: a power of two.
  std::size_t RingBytes() const;
  std::size_t BellAt(int rank) const { return Index(rank) * sizeof(Bell); }
  std::size_t StateAt(int sender, int receiver) const {
    return Index(world_size) * sizeof(Bell) + Channel(sender, receiver) * sizeof(ChannelState);
  }
  std::size_t RingAt(int sender, int receiver) const {
    return SegmentLayout::RoundUp(StateAt(0, world_size), SegmentLayout::kPage) +
           Channel(sender, receiver) * RingBytes();
  }
  std::size_t size() const { return RingAt(0, world_size); }

 private:
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }
  std::size_t Channel(int sender, int receiver) const {
    return Index(receiver) * Index(world_size) + Index(sender);
  }
};

// One end of a channel.
struct ChannelPlace {
  ChannelState& state;
  std::byte* ring;
  std::size_t ring_bytes;
  Bell& other_end;  // rung when something has moved
};

// Thread: one at a time.
class ChannelWriter {
 public:
  explicit ChannelWriter(const ChannelPlace& place) : place_(place) {}

  // A multiple of kGrain.
  std::size_t Room();
  // At most Room(), to be read after Publish(). Null: the bytes do not matter.
  void Write(const void* data, std::size_t bytes);
  void Publish();
  ChannelState& state() const { return place_.state; }
  std::size_t capacity() const { return place_.ring_bytes; }

 private:
  const ChannelPlace place_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  uint64_t read_ = 0;  // at least so much
};

// Thread: one at a time.
class ChannelReader {
 public:
  explicit ChannelReader(const ChannelPlace& place) : place_(place) {}

  // How much has come; a multiple of kGrain.
  std::size_t Ready();
  // At most Ready(). Null: nobody wants them.
  void Read(void* data, std::size_t bytes);
  // The room that was read can be written again.
  void Publish();
  ChannelState& state() const { return place_.state; }
  std::size_t capacity() const { return place_.ring_bytes; }

 private:
  const ChannelPlace place_;
  uint64_t read_ = 0;
  uint64_t published_ = 0;
  uint64_t written_ = 0;  // at least so much
};

}  // namespace rankrun::comm
