#include "comm/shm/chunk_tuner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace rankrun::comm {
namespace {

// From here on it costs next to nothing to know what a chunk costs.
constexpr std::size_t kWorthCounting = 64 * 1024;

}  // namespace

void ChunkTuner::Begin(Operation::Kind kind, const Shape& shape, int root) {
  Pass();
  const int column = static_cast<int>(std::bit_width(shape.chunk_bytes)) - kLeastBits;
  if (column < 0 || segment_.world_size() == 1) return;
  chunks_ = shape.chunks;
  choice_ = &ChoiceFor(kind, root, static_cast<std::size_t>(std::min(column, kClasses - 1)));
  before_ = *choice_;
  turn_ += 1;
  chunk_bytes_ = shape.chunk_bytes;
  behind_ = shape.behind;
  all_count_ = shape.chunk_bytes >= kWorthCounting;
}

// After `chunks_` is set.
StreamingChoice& ChunkTuner::ChoiceFor(Operation::Kind kind, int root, std::size_t column) {
  if (kind != Operation::Kind::kBroadcast || chunks_ == 1) {
    return choices_[static_cast<std::size_t>(kind)][column];
  }
  return root == segment_.rank() ? as_root_[column] : as_reader_;
}

void ChunkTuner::Cancel() {
  if (choice_ == nullptr) return;
  *choice_ = before_;
  turn_ -= 1;
  choice_ = nullptr;
}

// Who has but one chunk is told of its cost at the next collective that has any.
void ChunkTuner::KeepLast() {
  if (choice_ != nullptr && chunks_ == 1) last_ = At(0);
}

void ChunkTuner::BeginChunk(uint64_t chunk) {
  const auto next = choice_->ForNextChunk();
  under_way_[chunk % kUnderWay] = {.streams = next.streams, .counts = next.counts || all_count_};
}

// A slot is used again two chunks later, or two collectives later: what is in it
// was read by then.
void ChunkTuner::Show(uint64_t chunk) {
  if (!Counts(chunk)) return;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  const uint64_t ticks = std::min(under_way_[chunk % kUnderWay].ticks, kMost);
  auto& slot = segment_.area(segment_.rank()).chunk_ticks[SlotOf(chunk)];
  slot.store(static_cast<uint32_t>(ticks), std::memory_order_relaxed);
}

ChunkTuner::Done ChunkTuner::At(uint64_t chunk) const {
  return {.choice = choice_,
          .slot = SlotOf(chunk),
          .bytes = chunk_bytes_,
          .streamed = Streams(chunk),
          .counts = Counts(chunk)};
}

void ChunkTuner::LearnLast() { LearnFrom(std::exchange(last_, {})); }

void ChunkTuner::LearnFrom(const Done& chunk) {
  if (!chunk.counts) return;
  uint64_t ticks = 0;
  for (int r = 0; r < segment_.world_size(); ++r) {
    ticks += segment_.area(r).chunk_ticks[chunk.slot].load(std::memory_order_relaxed);
  }
  constexpr uint64_t kPerBytes = 1024;  // chunks of one class differ in size
  chunk.choice->Learn(chunk.streamed, ticks * kPerBytes / chunk.bytes);
}

}  // namespace rankrun::comm
