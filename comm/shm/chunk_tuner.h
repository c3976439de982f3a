#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/core/operation.h"
#include "comm/shm/schedule.h"
#include "comm/shm/segment.h"
#include "comm/shm/streaming.h"

namespace rankrun::comm::shm {

// Chooses how the ranks of a segment write the chunks of their collectives.
// Each rank publishes the cost of its chunk. After waiting for all others, each
// rank adds up the same costs, so that all make the same choice at the same
// chunk. In a Broadcast of several chunks only the root writes; it chooses
// alone, from separate estimates.
// Thread: one at a time. Lifetime: the segment outlives it.
class ChunkTuner {
 public:
  // Smallest chunk that is tuned.
  static constexpr size_t kMinBytes = 4096;

  explicit ChunkTuner(const Segment& segment) : segment_(segment) {}

  // Begins a collective whose shape all ranks know. `root` is used for
  // Broadcast.
  void Begin(Operation::Kind kind, const Shape& shape, int root);
  // Begins a collective of any other shape, which is not tuned.
  void SkipCollective() {
    DeferLast();
    choice_ = nullptr;
  }
  // Undoes Begin after the collective failed, because it may not have begun on
  // all ranks.
  void Cancel();

  void BeginRound(uint64_t round) {
    if (choice_ != nullptr && round < chunks_) BeginChunk(round);
  }
  bool Streams(uint64_t chunk) const {
    return choice_ != nullptr && active_chunks_[chunk % kMaxActive].streams;
  }
  // Returns whether the caller should Add() the cost of the chunk.
  bool Counts(uint64_t chunk) const {
    return choice_ != nullptr && active_chunks_[chunk % kMaxActive].counts;
  }
  void Add(uint64_t chunk, uint64_t ticks) { active_chunks_[chunk % kMaxActive].ticks += ticks; }
  // Must precede the publication of the round.
  void EndRound(uint64_t round) {
    if (choice_ != nullptr && round >= behind_ && round - behind_ < chunks_) {
      PublishTicks(round - behind_);
    }
  }
  // Called after the wait for the previous round of all other ranks.
  void Learn(uint64_t round) {
    if (round == 1 && last_.choice != nullptr) LearnLast();
    if (choice_ != nullptr && round > behind_) LearnFrom(MeasurementOf(round - 1 - behind_));
  }

 private:
  static constexpr size_t kMaxActive = 4;  // chunks in use at a time
  // Classes of chunk sizes by powers of two, because the cost per byte differs.
  static constexpr size_t kClasses = 7;
  static constexpr size_t kKinds = static_cast<size_t>(Operation::Kind::kRecv) + 1;

  struct ActiveChunk {
    bool streams = false;
    bool counts = false;
    uint64_t ticks = 0;
  };
  struct MeasuredChunk {
    StreamingChoice* choice = nullptr;
    size_t slot = 0;
    size_t bytes = 0;
    bool streamed = false;
    bool counts = false;
  };

  StreamingChoice& ChoiceFor(Operation::Kind kind, int root, size_t column);
  void BeginChunk(uint64_t chunk);
  void PublishTicks(uint64_t chunk);
  MeasuredChunk MeasurementOf(uint64_t chunk) const;
  void DeferLast();
  void LearnLast();
  void LearnFrom(const MeasuredChunk& chunk);
  size_t SlotOf(uint64_t chunk) const {
    static_assert(kTickSlots == 4);
    return turn_ % 2 * 2 + chunk % 2;
  }

  const Segment& segment_;
  StreamingChoice* choice_ = nullptr;  // null: this collective is not tuned
  StreamingChoice saved_choice_;       // as it was when this collective began
  uint64_t turn_ = 0;                  // number of tuned collectives
  uint64_t chunks_ = 0;
  size_t chunk_bytes_ = 0;
  uint64_t behind_ = 0;
  bool all_count_ = false;
  std::array<ActiveChunk, kMaxActive> active_chunks_;
  MeasuredChunk last_;  // single chunk of an earlier collective, not evaluated yet
  std::array<std::array<StreamingChoice, kClasses>, kKinds> choices_;
  // For Broadcasts of several chunks: choices as the root, and as another rank,
  // which writes nothing.
  std::array<StreamingChoice, kClasses> as_root_;
  StreamingChoice as_reader_;
};

}  // namespace rankrun::comm::shm
