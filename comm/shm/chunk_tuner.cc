#include "comm/shm/chunk_tuner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace rankrun::comm::shm {
namespace {

// Bytes from which measuring a chunk costs almost nothing in comparison.
constexpr size_t kWorthCounting = 64 * 1024;

}  // namespace

void ChunkTuner::Begin(Operation::Kind kind, const Shape& shape, int root) {
  SkipCollective();
  if (shape.chunk_bytes < kMinBytes || segment_.world_size() == 1) return;
  size_t column = std::bit_width(shape.chunk_bytes) - std::bit_width(kMinBytes);
  chunks_ = shape.chunks;
  choice_ = &ChoiceFor(kind, root, std::min(column, kClasses - 1));
  saved_choice_ = *choice_;
  turn_ += 1;
  chunk_bytes_ = shape.chunk_bytes;
  behind_ = shape.behind;
  all_count_ = shape.chunk_bytes >= kWorthCounting;
}

// Must follow the assignment of `chunks_`.
StreamingChoice& ChunkTuner::ChoiceFor(Operation::Kind kind, int root, size_t column) {
  if (kind != Operation::Kind::kBroadcast || chunks_ == 1) {
    return choices_[static_cast<size_t>(kind)][column];
  }
  return root == segment_.rank() ? as_root_[column] : as_reader_;
}

void ChunkTuner::Cancel() {
  if (choice_ == nullptr) return;
  *choice_ = saved_choice_;
  turn_ -= 1;
  choice_ = nullptr;
}

// A collective of one chunk has no later wait in which its cost could be read.
// The next tuned collective evaluates it.
void ChunkTuner::DeferLast() {
  if (choice_ != nullptr && chunks_ == 1) last_ = MeasurementOf(0);
}

void ChunkTuner::BeginChunk(uint64_t chunk) {
  auto next = choice_->ForNextChunk();
  active_chunks_[chunk % kMaxActive] = {.streams = next.streams,
                                        .counts = next.counts || all_count_};
}

// A slot is reused after two chunks or two collectives. All ranks have read it
// by then.
void ChunkTuner::PublishTicks(uint64_t chunk) {
  if (!Counts(chunk)) return;
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  uint64_t ticks = std::min(active_chunks_[chunk % kMaxActive].ticks, kMax);
  auto& slot = segment_.area(segment_.rank()).chunk_ticks[SlotOf(chunk)];
  slot.store(static_cast<uint32_t>(ticks), std::memory_order_relaxed);
}

ChunkTuner::MeasuredChunk ChunkTuner::MeasurementOf(uint64_t chunk) const {
  return {.choice = choice_,
          .slot = SlotOf(chunk),
          .bytes = chunk_bytes_,
          .streamed = Streams(chunk),
          .counts = Counts(chunk)};
}

void ChunkTuner::LearnLast() { LearnFrom(std::exchange(last_, {})); }

void ChunkTuner::LearnFrom(const MeasuredChunk& chunk) {
  if (!chunk.counts) return;
  uint64_t ticks = 0;
  for (int r = 0; r < segment_.world_size(); ++r) {
    ticks += segment_.area(r).chunk_ticks[chunk.slot].load(std::memory_order_relaxed);
  }
  constexpr uint64_t kPerBytes = 1024;  // unit of cost, because sizes in a class differ
  chunk.choice->Learn(chunk.streamed, ticks * kPerBytes / chunk.bytes);
}

}  // namespace rankrun::comm::shm
