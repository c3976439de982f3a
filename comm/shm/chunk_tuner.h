#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/operation.h"
#include "comm/shm/schedule.h"
#include "comm/shm/segment.h"
#include "comm/shm/streaming.h"

namespace rankrun::comm {

// Has the ranks of a segment find out together how they best write the chunks of
// their collectives. Each shows what a chunk has cost it; who awaits all the
// others adds all up, so that all come to the same choice at the same chunk. Of a
// Broadcast in several chunks only the root does, who alone writes: it chooses
// alone, apart from what all have found out.
// Thread: one at a time. Lifetime: the segment outlives it.
class ChunkTuner {
 public:
  explicit ChunkTuner(const Segment& segment) : segment_(segment) {}

  // The next collective whose shape all ranks know. `root`: of Broadcast.
  void Begin(Operation::Kind kind, const Shape& shape, int root);
  // The next collective is none of those.
  void Pass() {
    KeepLast();
    choice_ = nullptr;
  }
  // What was begun comes to nothing, on some ranks: as if it had not begun.
  void Cancel();

  void BeginRound(uint64_t round) {
    if (choice_ != nullptr && round < chunks_) BeginChunk(round);
  }
  bool Streams(uint64_t chunk) const {
    return choice_ != nullptr && under_way_[chunk % kUnderWay].streams;
  }
  // Whether costs of the chunk are to be added.
  bool Counts(uint64_t chunk) const {
    return choice_ != nullptr && under_way_[chunk % kUnderWay].counts;
  }
  void Add(uint64_t chunk, uint64_t ticks) { under_way_[chunk % kUnderWay].ticks += ticks; }
  // Before others are shown that the round is over.
  void EndRound(uint64_t round) {
    if (choice_ != nullptr && round >= behind_ && round - behind_ < chunks_) Show(round - behind_);
  }
  // After all others were seen to be through with the round before.
  void Learn(uint64_t round) {
    if (round == 1 && last_.choice != nullptr) LearnLast();
    if (choice_ != nullptr && round > behind_) LearnFrom(At(round - 1 - behind_));
  }

 private:
  static constexpr std::size_t kUnderWay = 4;  // chunks, at most
  // By the bytes of a chunk: the cost per byte differs.
  static constexpr int kLeastBits = 13;
  static constexpr int kClasses = 7;
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Operation::Kind::kRecv) + 1;

  struct UnderWay {
    bool streams = false;
    bool counts = false;
    uint64_t ticks = 0;
  };
  struct Done {
    StreamingChoice* choice = nullptr;
    std::size_t slot = 0;
    std::size_t bytes = 0;
    bool streamed = false;
    bool counts = false;
  };

  StreamingChoice& ChoiceFor(Operation::Kind kind, int root, std::size_t column);
  void BeginChunk(uint64_t chunk);
  void Show(uint64_t chunk);
  Done At(uint64_t chunk) const;
  void KeepLast();
  void LearnLast();
  void LearnFrom(const Done& chunk);
  std::size_t SlotOf(uint64_t chunk) const {
    static_assert(kTickSlots == 4);
    return turn_ % 2 * 2 + chunk % 2;
  }

  const Segment& segment_;
  StreamingChoice* choice_ = nullptr;  // null: nothing is found out in this collective
  StreamingChoice before_;             // as it was when this collective began
  uint64_t turn_ = 0;                  // of collectives in which something is
  uint64_t chunks_ = 0;
  std::size_t chunk_bytes_ = 0;
  uint64_t behind_ = 0;
  bool all_count_ = false;
  std::array<UnderWay, kUnderWay> under_way_;
  Done last_;  // the only one of an earlier collective, not learnt from yet
  std::array<std::array<StreamingChoice, kClasses>, kKinds> choices_;
  // Of Broadcasts in several chunks: at their root, and elsewhere, where what it
  // says matters to nobody.
  std::array<StreamingChoice, kClasses> as_root_;
  StreamingChoice as_reader_;
};

}  // namespace rankrun::comm
