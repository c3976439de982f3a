#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "comm/core/operation.h"

// Layout of the memory that the ranks of one process group share, by offset:
//   SegmentHeader, RankArea of each rank, tables of byte counts, bounce
//   buffers of each rank, messages.
// Data that only one rank writes is in cache lines of its own.
namespace rankrun::comm::shm {

constexpr uint64_t kSegmentMagic = 0x314d454d'53485252;  // "RRHSMEM1", little-endian
constexpr uint32_t kSegmentVersion = 5;

// Call lines of one rank, used in turn, so that a rank that refuses several
// calls in a row overwrites no line that others still read.
constexpr uint64_t kCallLines = 4;
constexpr size_t kTickSlots = 4;
constexpr size_t kInlineBytes = 112;
constexpr size_t kReasonBytes = 256;
constexpr size_t kErrorBytes = 1024;
constexpr size_t kLineBytes = 64;
constexpr size_t kApart = 128;  // processors fetch cache lines in pairs

// Announcement of a rank's call. `number` counts the collectives of the backend
// from 1 and is written last.
struct alignas(kLineBytes) CallLine {
  std::atomic<uint64_t> number;
  uint64_t fingerprint;          // comm/core/operation.h; 0: refused
  std::byte data[kInlineBytes];  // the first 48 bytes travel with the number
};
static_assert(sizeof(CallLine) == 2 * kLineBytes);

// Details of the call for error texts, written before the line.
struct alignas(kLineBytes) CallDetails {
  Operation operation;
  char reason[kReasonBytes];  // of a refusal; zero-terminated
};

// Start of CallLine::data if the data is not in the line: the bytes that this
// rank sends to, and expects from, each other rank.
struct LineBytes {
  static constexpr uint64_t kUneven = ~uint64_t{0};  // sizes differ: they are in the table
  uint64_t sends;
  uint64_t expects;
};
static_assert(sizeof(LineBytes) <= kInlineBytes);

struct alignas(kApart) RankArea {
  static constexpr uint32_t kMapped = 1;   // has mapped the segment and filled in its process
  static constexpr uint32_t kWatches = 2;  // also watches the processes of all other ranks

  CallLine lines[kCallLines];
  // (number of stepped collectives << kStepBits) + steps done; may wrap.
  alignas(kApart) std::atomic<uint64_t> step;
  std::atomic<uint32_t> chunk_ticks[kTickSlots];  // measured cost of chunks (chunk_tuner.h)
  std::atomic<int32_t> processor;  // 1 + its current CPU if ranks share processors, else 0
  // Number of threads that sleep on a word of this rank, which must wake them.
  alignas(kApart) std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> ready;     // 0, kMapped or kWatches
  std::atomic<uint32_t> left;      // 1: has destroyed its backend
  std::atomic<int32_t> exit_code;  // plus 1, of a process that ended without that; 0: not known
  int32_t pid;
  int32_t processors;        // number of CPUs that it may run on; 0: not known
  uint64_t processors_hash;  // hash of their numbers
  uint64_t start_time;       // of the process, in clock ticks since boot
  CallDetails details[kCallLines];
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
  // First error of the group; all ranks fail with it in `error_call` and later. A rank that
  // has not decided yet may go back from kBeingWritten to kNone.
  enum ErrorState : uint32_t { kNone = 0, kBeingWritten = 1, kWritten = 2 };
  alignas(kApart) std::atomic<uint32_t> error_state;
  int32_t error_code;
  uint64_t error_call;           // number of the operation
  char error_text[kErrorBytes];  // zero-terminated
};

// Offsets of all parts in bytes. A value.
struct SegmentLayout {
  int world_size;
  size_t bounce_bytes;   // per rank, a multiple of the page size
  size_t message_bytes;  // for all ranks, a multiple of the page size

  size_t AreaAt(int rank) const { return kPage + Index(rank) * sizeof(RankArea); }
  // Table of one call line: bytes sent to each rank, then bytes expected from
  // each.
  size_t TableAt(int rank, uint64_t line) const {
    return AreaAt(world_size) + (Index(rank) * kCallLines + line) * TableBytes();
  }
  size_t BounceAt(int rank) const {
    return RoundUp(TableAt(world_size, 0), kPage) + Index(rank) * bounce_bytes;
  }
  size_t MessagesAt() const { return BounceAt(world_size); }
  size_t size() const { return MessagesAt() + message_bytes; }

  static constexpr size_t kPage = 4096;
  static constexpr size_t RoundUp(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
  }

 private:
  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  size_t TableBytes() const {
    return RoundUp(2 * Index(world_size) * sizeof(uint64_t), kLineBytes);
  }
};
static_assert(sizeof(SegmentHeader) <= SegmentLayout::kPage);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Returns a zero-terminated text of another rank, at most the whole field.
template <size_t kBytes>
std::string TextOf(const char (&field)[kBytes]) {
  return std::string(field, strnlen(field, kBytes));
}

// Returns the size of the memory for messages (channel.h), which is initially
// zero.
size_t MessageBytes(int world_size);

}  // namespace rankrun::comm::shm
