#include "comm/shm/schedule.h"

#include <algorithm>

namespace rankrun::comm::shm {
namespace {

using Kind = Operation::Kind;
using Space = Place::Space;

constexpr size_t kUnit = 64;  // bytes of a cache line, a multiple of every element size

constexpr size_t DivideUp(size_t value, size_t by) { return (value + by - 1) / by; }
constexpr size_t Units(size_t bytes) { return DivideUp(bytes, kUnit) * kUnit; }

size_t Largest(std::span<const size_t> blocks) {
  return blocks.empty() ? 0 : *std::max_element(blocks.begin(), blocks.end());
}

// Generates the steps of one round of one rank.
class Round {
 public:
  Round(const Exchange& exchange, uint64_t round, std::vector<SharedStep>* steps)
      : x_(exchange), round_(round), steps_(steps) {
    auto n = static_cast<size_t>(x_.world_size);
    slots_ = HasSlots() ? n : 1;
    size_t total = Total();
    size_t room = x_.buffer_bytes / slots_ / kUnit * kUnit;
    size_t in_a_chunk = CutsOneBlock() ? room * slots_ : room;
    size_t chunks = DivideUp(total, in_a_chunk);
    // Chunks of nearly equal size. A slot has the same offset in each of them.
    size_t even = chunks == 0 ? 0 : DivideUp(total, chunks);
    // If block sizes differ between ranks, slots must not depend on them.
    bool may_differ = BlocksMayDiffer(x_.kind);
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
    bool last = round_ + 1 == shape_.rounds;
    steps_->push_back(
        SharedStep{.kind = SharedStep::Kind::kPublish, .value = last ? kLastStep : round_ + 1});
  }

 private:
  bool Reduces() const {
    return x_.kind == Kind::kAllReduce || x_.kind == Kind::kReduce ||
           x_.kind == Kind::kReduceScatter;
  }
  // Whether one block is cut into slices, one for each rank to reduce.
  bool CutsOneBlock() const { return TwoPhases(); }
  bool TwoPhases() const {
    return (x_.kind == Kind::kAllReduce || x_.kind == Kind::kReduce) && !x_.flat;
  }
  uint64_t Behind() const { return TwoPhases() ? 2 : 1; }
  bool Gets() const { return !Reduces() || TwoPhases(); }
  // Whether a buffer has a slot for each rank.
  bool HasSlots() const {
    return TwoPhases() || x_.kind == Kind::kScatter || x_.kind == Kind::kAllToAll ||
           x_.kind == Kind::kReduceScatter;
  }
  bool IsRoot() const { return x_.rank == x_.root; }

  // Bytes of the largest block that this rank sends or receives.
  size_t Total() const { return std::max(Largest(x_.inputs), Largest(x_.outputs)); }

  static size_t BlockOf(std::span<const size_t> blocks, int index) {
    return blocks.size() == 1 ? blocks[0] : blocks[static_cast<size_t>(index)];
  }

  size_t Buffer(uint64_t chunk) const {
    uint64_t buffer =
        chunk == 0 ? FirstBufferOf(x_.number) : kFirstBuffers + chunk % (kBuffers - kFirstBuffers);
    return buffer * x_.buffer_bytes;
  }
  size_t SlotAt(uint64_t chunk, int slot) const {
    return Buffer(chunk) + (slots_ == 1 ? 0 : static_cast<size_t>(slot) * slot_);
  }

  // Part of a block that one chunk carries, or its slice for one rank.
  struct Part {
    size_t offset;
    size_t bytes;
  };
  Part PartOf(size_t block, uint64_t chunk, int slot) const {
    size_t offset = chunk * slot_;
    if (CutsOneBlock()) offset = (chunk * slots_ + static_cast<size_t>(slot)) * slot_;
    return Part{offset, block > offset ? std::min(slot_, block - offset) : 0};
  }

  void Copy(uint64_t chunk, const Place& to, const Place& from, size_t bytes) {
    if (bytes == 0) return;
    steps_->push_back(SharedStep{
        .kind = SharedStep::Kind::kCopy, .to = to, .from = from, .bytes = bytes, .chunk = chunk});
  }

  // In rooted collectives only the root waits for all ranks; the others wait
  // for the root.
  void Await() {
    if (x_.world_size == 1) return;
    bool by_root = round_ > 1 && (x_.kind == Kind::kBroadcast || x_.kind == Kind::kGather ||
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
      int block = x_.inputs.size() == 1 ? 0 : slot;
      Part part = PartOf(BlockOf(x_.inputs, block), chunk, slot);
      Copy(chunk, {Space::kBounce, x_.rank, SlotAt(chunk, slot)},
           {Space::kInput, block, part.offset}, part.bytes);
    }
  }

  void Reduce(uint64_t chunk) {
    if (x_.kind == Kind::kReduce && x_.flat && !IsRoot()) return;
    int block = x_.inputs.size() == 1 ? 0 : x_.rank;
    Part part = PartOf(BlockOf(x_.inputs, block), chunk, x_.rank);
    if (part.bytes == 0) return;
    size_t slot = SlotAt(chunk, x_.rank);
    SharedStep step{
        .kind = SharedStep::Kind::kReduce, .bounce = slot, .bytes = part.bytes, .chunk = chunk};
    step.from = {Space::kInput, block, part.offset};
    if (x_.kind != Kind::kReduce || IsRoot()) step.to = {Space::kOutput, 0, part.offset};
    bool others_get_it = x_.kind == Kind::kAllReduce || !IsRoot();
    if (TwoPhases() && others_get_it) step.also = {Space::kBounce, x_.rank, slot};
    steps_->push_back(step);
  }

  void Get(uint64_t chunk) {
    bool root_only = x_.kind == Kind::kReduce || x_.kind == Kind::kGather;
    if (root_only && !IsRoot()) return;
    if (x_.kind == Kind::kBroadcast || x_.kind == Kind::kScatter) return GetFrom(x_.root, chunk);
    // Each rank starts with its neighbour, so that they do not all read the
    // same memory at once.
    for (int i = 1; i <= x_.world_size; ++i) GetFrom((x_.rank + i) % x_.world_size, chunk);
  }

  void GetFrom(int source, uint64_t chunk) {
    bool own = source == x_.rank;
    if (own && (TwoPhases() || x_.kind == Kind::kBroadcast)) return;
    if (x_.outputs.empty()) return;
    int block = x_.outputs.size() == 1 ? 0 : source;
    Part part = PartOf(x_.outputs[static_cast<size_t>(block)], chunk, source);
    Place to{Space::kOutput, block, part.offset};
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
  size_t slots_;  // per buffer
  size_t slot_;   // size of a slot in bytes
  Shape shape_;
};

}  // namespace

bool BlocksMayDiffer(Kind kind) { return MayBeUneven(kind) || kind == Kind::kReduceScatter; }

Shape ShapeOf(const Exchange& exchange) { return Round(exchange, 0, nullptr).shape(); }

size_t MaxSteps(int world_size) { return 2 * static_cast<size_t>(world_size) + 4; }

void StepsOf(const Exchange& exchange, uint64_t round, std::vector<SharedStep>& steps) {
  steps.clear();
  Round(exchange, round, &steps).Make();
}

}  // namespace rankrun::comm::shm
