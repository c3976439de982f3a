#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/operation.h"

// The memory that the ranks of one process group share, by offset:
//   SegmentHeader, RankArea of each rank, tables of byte counts, bounce
//   buffers of each rank, messages.
// What one rank alone writes is in cache lines of its own.
namespace rankrun::comm {

constexpr uint64_t kSegmentMagic = 0x314d454d'53485252;  // "RRHSMEM1", little-endian
constexpr uint32_t kSegmentVersion = 3;

// Calls are shown in this many lines in turn, so that a rank which refuses some
// calls in a row overwrites nothing that is still read.
constexpr uint64_t kCallLines = 4;
constexpr std::size_t kTickSlots = 4;
constexpr std::size_t kInlineBytes = 112;
constexpr std::size_t kReasonBytes = 256;
constexpr std::size_t kErrorBytes = 1024;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kApart = 128;  // processors fetch cache lines in pairs

// How a rank says that it has come to a collective. `number` counts the
// collectives of the backend from 1 and is written last.
struct alignas(kLineBytes) CallLine {
  std::atomic<uint64_t> number;
  uint64_t fingerprint;          // comm/operation.h; 0: refused
  std::byte data[kInlineBytes];  // the first 48 bytes travel with the number
};
static_assert(sizeof(CallLine) == 2 * kLineBytes);

// The same call for people, written before the line.
struct alignas(kLineBytes) ShownCall {
  Operation operation;
  char reason[kReasonBytes];  // of a refusal; ends with a zero
};

// The beginning of CallLine::data of operations whose data is not in it: how
// many bytes this rank has for each of the others, and wants of each.
struct LineBytes {
  static constexpr uint64_t kUneven = ~uint64_t{0};  // not all alike: see its table
  uint64_t gives;
  uint64_t wants;
};
static_assert(sizeof(LineBytes) <= kInlineBytes);

struct alignas(kApart) RankArea {
  // The process is named below and has mapped all; it watches all the others.
  static constexpr uint32_t kMapped = 1;
  static constexpr uint32_t kWatches = 2;

  CallLine lines[kCallLines];
  // (count of collectives in steps << kStepBits) + steps done; it may wrap.
  alignas(kApart) std::atomic<uint64_t> step;
  std::atomic<uint32_t> chunk_ticks[kTickSlots];  // what chunks have cost it (chunk_tuner.h)
  std::atomic<int32_t> processor;  // 1 + where it runs, if it shares processors; or 0
  // How many threads sleep on a word of this rank: it has to wake them.
  alignas(kApart) std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> ready;  // one of the above
  std::atomic<uint32_t> left;   // it has destroyed its backend
  int32_t pid;
  int32_t processors;        // how many it may run on; 0: not known
  uint64_t processors_hash;  // of which
  uint64_t start_time;       // of the process, in clock ticks since boot
  ShownCall shown[kCallLines];
};

constexpr int kStepBits = 24;

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t world_size;
  uint64_t nonce;
  uint64_t size_bytes;
  uint64_t bounce_bytes;
  uint64_t message_bytes;
  // The first error of the group, which all ranks end with.
  enum ErrorState : uint32_t { kNone = 0, kBeingWritten = 1, kWritten = 2 };
  alignas(kApart) std::atomic<uint32_t> error_state;
  int32_t error_code;
  char error_text[kErrorBytes];  // ends with a zero
};

// Where things are. A value.
struct SegmentLayout {
  int world_size;
  std::size_t bounce_bytes;   // of one rank, a multiple of the page
  std::size_t message_bytes;  // of all ranks, a multiple of the page

  std::size_t AreaAt(int rank) const { return kPage + Index(rank) * sizeof(RankArea); }
  // What the rank gives to each, then what it wants of each.
  std::size_t TableAt(int rank, uint64_t line) const {
    return AreaAt(world_size) + (Index(rank) * kCallLines + line) * TableBytes();
  }
  std::size_t BounceAt(int rank) const {
    return RoundUp(TableAt(world_size, 0), kPage) + Index(rank) * bounce_bytes;
  }
  std::size_t MessagesAt() const { return BounceAt(world_size); }
  std::size_t size() const { return MessagesAt() + message_bytes; }

  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t RoundUp(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
  }

 private:
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }
  std::size_t TableBytes() const {
    return RoundUp(2 * Index(world_size) * sizeof(uint64_t), kLineBytes);
  }
};
static_assert(sizeof(SegmentHeader) <= SegmentLayout::kPage);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// What messages between the ranks need (channel.h); all zero at first.
std::size_t MessageBytes(int world_size);

}  // namespace rankrun::comm
