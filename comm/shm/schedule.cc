#include "comm/shm/schedule.h"

#include <algorithm>

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;
using Space = Place::Space;

constexpr std::size_t kFirst = 2;  // buffers for what is put in round 0
constexpr std::size_t kUnit = 64;  // a cache line, and a multiple of each element

constexpr std::size_t DivideUp(std::size_t value, std::size_t by) { return (value + by - 1) / by; }
constexpr std::size_t Units(std::size_t bytes) { return DivideUp(bytes, kUnit) * kUnit; }

std::size_t Largest(std::span<const std::size_t> blocks) {
  return blocks.empty() ? 0 : *std::max_element(blocks.begin(), blocks.end());
}

// The steps of one round of one rank.
class Round {
 public:
  Round(const Exchange& exchange, uint64_t round, std::vector<SharedStep>* steps)
      : x_(exchange), round_(round), steps_(steps) {
    const auto n = static_cast<std::size_t>(x_.world_size);
    slots_ = HasSlots() ? n : 1;
    const std::size_t total = Total();
    const std::size_t room = x_.buffer_bytes / slots_ / kUnit * kUnit;
    const std::size_t in_a_chunk = CutsOneBlock() ? room * slots_ : room;
    const std::size_t chunks = DivideUp(total, in_a_chunk);
    // All chunks nearly alike. A slot has the same place in all of them.
    const std::size_t even = chunks == 0 ? 0 : DivideUp(total, chunks);
    // Where ranks know different blocks, slots must not depend on these.
    const bool may_differ = BlocksMayDiffer(x_.kind);
    slot_ = may_differ ? room : Units(CutsOneBlock() ? DivideUp(even, slots_) : even);
    shape_ = Shape{.rounds = std::max<uint64_t>(2, chunks + Behind()),
                   .chunks = chunks,
                   .behind = Behind(),
                   .chunk_bytes = may_differ ? std::min(total, room) : even};
  }

  const Shape& shape() const { return shape_; }

  void Make() {
    if (round_ > 0) Await();
    if (Reduces() && round_ >= 1) Reduce(round_ - 1);
    Put(round_);
    if (Gets() && round_ >= Behind()) Get(round_ - Behind());
    const bool last = round_ + 1 == shape_.rounds;
    steps_->push_back(
        SharedStep{.kind = SharedStep::Kind::kPublish, .value = last ? kLastStep : round_ + 1});
  }

 private:
  bool Reduces() const {
    return x_.kind == Kind::kAllReduce || x_.kind == Kind::kReduce ||
           x_.kind == Kind::kReduceScatter;
  }
  // One block is cut into slices for all ranks to reduce.
  bool CutsOneBlock() const { return TwoPhases(); }
  bool TwoPhases() const {
    return (x_.kind == Kind::kAllReduce || x_.kind == Kind::kReduce) && !x_.flat;
  }
  uint64_t Behind() const { return TwoPhases() ? 2 : 1; }
  bool Gets() const { return !Reduces() || TwoPhases(); }
  // A buffer has a slot for each rank.
  bool HasSlots() const {
    return TwoPhases() || x_.kind == Kind::kScatter || x_.kind == Kind::kAllToAll ||
           x_.kind == Kind::kReduceScatter;
  }
  bool IsRoot() const { return x_.rank == x_.root; }

  // Of the largest block that this rank sends or gets.
  std::size_t Total() const { return std::max(Largest(x_.inputs), Largest(x_.outputs)); }

  static std::size_t BlockOf(std::span<const std::size_t> blocks, int index) {
    return blocks.size() == 1 ? blocks[0] : blocks[static_cast<std::size_t>(index)];
  }

  std::size_t Buffer(uint64_t chunk) const {
    const uint64_t buffer = chunk == 0 ? x_.number % kFirst : kFirst + chunk % (kBuffers - kFirst);
    return buffer * x_.buffer_bytes;
  }
  std::size_t SlotAt(uint64_t chunk, int slot) const {
    return Buffer(chunk) + (slots_ == 1 ? 0 : static_cast<std::size_t>(slot) * slot_);
  }

  // A chunk's part of a block, or the slice of it for one rank.
  struct Part {
    std::size_t offset;
    std::size_t bytes;
  };
  Part PartOf(std::size_t block, uint64_t chunk, int slot) const {
    std::size_t offset = chunk * slot_;
    if (CutsOneBlock()) offset = (chunk * slots_ + static_cast<std::size_t>(slot)) * slot_;
    return Part{offset, block > offset ? std::min(slot_, block - offset) : 0};
  }

  void Copy(uint64_t chunk, const Place& to, const Place& from, std::size_t bytes) {
    if (bytes == 0) return;
    steps_->push_back(SharedStep{
        .kind = SharedStep::Kind::kCopy, .to = to, .from = from, .bytes = bytes, .chunk = chunk});
  }

  // Ranks of the other side of a rooted collective are awaited by the root alone.
  void Await() {
    if (x_.world_size == 1) return;
    const bool by_root = round_ > 1 && (x_.kind == Kind::kBroadcast || x_.kind == Kind::kGather ||
                                        x_.kind == Kind::kScatter);
    steps_->push_back(SharedStep{.kind = SharedStep::Kind::kAwait,
                                 .rank = by_root && !IsRoot() ? x_.root : SharedStep::kAll,
                                 .value = round_});
  }

  bool Puts() const {
    switch (x_.kind) {
      case Kind::kAllReduce:
      case Kind::kAllGather:
      case Kind::kReduceScatter:
      case Kind::kAllToAll:
        return true;
      case Kind::kReduce:
        return !x_.flat || !IsRoot();
      case Kind::kGather:
        return !IsRoot();
      case Kind::kBroadcast:
      case Kind::kScatter:
        return IsRoot();
      case Kind::kBarrier:
      case Kind::kSend:
      case Kind::kRecv:
        return false;
    }
    __builtin_unreachable();
  }

  void Put(uint64_t chunk) {
    if (!Puts() || x_.world_size == 1) return;
    for (int slot = 0; slot < static_cast<int>(slots_); ++slot) {
      if (slots_ > 1 && slot == x_.rank) continue;
      const int block = x_.inputs.size() == 1 ? 0 : slot;
      const Part part = PartOf(BlockOf(x_.inputs, block), chunk, slot);
      Copy(chunk, {Space::kBounce, x_.rank, SlotAt(chunk, slot)},
           {Space::kInput, block, part.offset}, part.bytes);
    }
  }

  void Reduce(uint64_t chunk) {
    if (x_.kind == Kind::kReduce && x_.flat && !IsRoot()) return;
    const int block = x_.inputs.size() == 1 ? 0 : x_.rank;
    const Part part = PartOf(BlockOf(x_.inputs, block), chunk, x_.rank);
    if (part.bytes == 0) return;
    const std::size_t slot = SlotAt(chunk, x_.rank);
    SharedStep step{
        .kind = SharedStep::Kind::kReduce, .bounce = slot, .bytes = part.bytes, .chunk = chunk};
    step.from = {Space::kInput, block, part.offset};
    if (x_.kind != Kind::kReduce || IsRoot()) step.to = {Space::kOutput, 0, part.offset};
    const bool others_get_it = x_.kind == Kind::kAllReduce || !IsRoot();
    if (TwoPhases() && others_get_it) step.also = {Space::kBounce, x_.rank, slot};
    steps_->push_back(step);
  }

  void Get(uint64_t chunk) {
    const bool root_only = x_.kind == Kind::kReduce || x_.kind == Kind::kGather;
    if (root_only && !IsRoot()) return;
    if (x_.kind == Kind::kBroadcast || x_.kind == Kind::kScatter) return GetFrom(x_.root, chunk);
    // Each rank begins with its neighbour, so that not all read the same memory.
    for (int i = 1; i <= x_.world_size; ++i) GetFrom((x_.rank + i) % x_.world_size, chunk);
  }

  void GetFrom(int source, uint64_t chunk) {
    const bool own = source == x_.rank;
    if (own && (TwoPhases() || x_.kind == Kind::kBroadcast)) return;
    if (x_.outputs.empty()) return;
    const int block = x_.outputs.size() == 1 ? 0 : source;
    const Part part = PartOf(x_.outputs[static_cast<std::size_t>(block)], chunk, source);
    const Place to{Space::kOutput, block, part.offset};
    if (own) {
      return Copy(chunk, to, {Space::kInput, x_.inputs.size() == 1 ? 0 : source, part.offset},
                  part.bytes);
    }
    Copy(chunk, to, {Space::kBounce, source, SlotAt(chunk, TwoPhases() ? source : x_.rank)},
         part.bytes);
  }

  const Exchange& x_;
  const uint64_t round_;
  std::vector<SharedStep>* const steps_;
  std::size_t slots_;  // of a buffer
  std::size_t slot_;   // in bytes
  Shape shape_;
};

}  // namespace

bool BlocksMayDiffer(Kind kind) { return MayBeUneven(kind) || kind == Kind::kReduceScatter; }

Shape ShapeOf(const Exchange& exchange) { return Round(exchange, 0, nullptr).shape(); }

std::size_t MostSteps(int world_size) { return 2 * static_cast<std::size_t>(world_size) + 4; }

void StepsOf(const Exchange& exchange, uint64_t round, std::vector<SharedStep>& steps) {
  steps.clear();
  Round(exchange, round, &steps).Make();
}

}  // namespace rankrun::comm
