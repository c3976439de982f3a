#include "comm/shm/executor.h"

#include <algorithm>
#include <cstring>

#include "base/status/ticks.h"
#include "comm/shm/copy.h"

namespace rankrun::comm::shm {
namespace {

using Kind = Operation::Kind;
using Space = Place::Space;

static_assert(kLastStep >> kStepBits == 0);

// Bytes per piece of a result with two targets, so that the copy to the second
// one reads from the first-level cache.
constexpr size_t kInCache = 16 * 1024;
// Bytes from which a program's data is unlikely to be in any cache.
constexpr uint64_t kOutOfCaches = 4 << 20;

// A rank without progress for this long counts as stalled. A wait covers two
// steps at most, and a running rank does many steps in this time.
constexpr std::chrono::milliseconds kStalled{20};

// Whether each rank can derive the block sizes of all ranks from its own.
bool AreSizesKnown(Kind kind) {
  return kind != Kind::kGather && kind != Kind::kScatter && kind != Kind::kAllToAll;
}

uint64_t StepValue(uint64_t count, uint64_t step) { return count << kStepBits | step; }

}  // namespace

Executor::Executor(const Segment& segment, Waiter& waiter, CallRendezvous& calls,
                   size_t buffer_bytes)
    : segment_(segment),
      waiter_(waiter),
      calls_(calls),
      buffer_bytes_(buffer_bytes),
      step_(segment.area(segment.rank()).step),
      tuner_(segment) {
  auto n = static_cast<size_t>(segment.world_size());
  input_bytes_.reserve(n);
  output_bytes_.reserve(n);
  parts_.resize(n);
  steps_.reserve(MaxSteps(segment.world_size()));
  // Other ranks read it only after this rank has published a call.
  awaited_ = StepValue(count_, 0);
  step_.store(awaited_, std::memory_order_relaxed);
}

Exchange Executor::ExchangeOf(const Collective& collective, bool flat) {
  input_bytes_.clear();
  for (const ConstBlock& block : collective.inputs) input_bytes_.push_back(block.bytes);
  output_bytes_.clear();
  for (const Block& block : collective.outputs) output_bytes_.push_back(block.bytes);
  return Exchange{.kind = collective.kind,
                  .rank = segment_.rank(),
                  .world_size = segment_.world_size(),
                  .root = collective.root,
                  .inputs = input_bytes_,
                  .outputs = output_bytes_,
                  .buffer_bytes = buffer_bytes_,
                  .number = calls_.number(),
                  .flat = flat};
}

Result<void> Executor::Run(const Collective& collective, bool flat, const Call& call) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  Exchange exchange = ExchangeOf(collective, flat);
  Shape shape = ShapeOf(exchange);
  out_of_caches_ = shape.chunks * shape.chunk_bytes >= kOutOfCaches;
  if (AreSizesKnown(collective.kind)) {
    tuner_.Begin(collective.kind, shape, collective.root);
  } else {
    tuner_.SkipCollective();
  }
  if (BlocksMayDiffer(collective.kind)) calls_.AnnounceBytes(input_bytes_, output_bytes_);
  for (uint64_t round = 0; round < shape.rounds; ++round) {
    tuner_.BeginRound(round);
    StepsOf(exchange, round, steps_);
    for (const SharedStep& step : steps_) {
      if (Do(collective, step, round)) continue;
      tuner_.Cancel();
      return calls_.TakeError();
    }
  }
  return {};
}

// Step 1 is published and awaited as the call line; later steps as the step
// counter.
bool Executor::Do(const Collective& collective, const SharedStep& step, uint64_t round) {
  switch (step.kind) {
    case SharedStep::Kind::kCopy:
    case SharedStep::Kind::kReduce: {
      bool counts = tuner_.Counts(step.chunk);
      uint64_t began = counts ? Ticks() : 0;
      Move(collective, step);
      if (counts) tuner_.Add(step.chunk, Ticks() - began);
      return true;
    }
    case SharedStep::Kind::kPublish:
      tuner_.EndRound(round);
      if (step.value == 1) {
        calls_.Publish();
      } else {
        waiter_.Publish(step_, StepValue(count_, step.value));
      }
      return true;
    case SharedStep::Kind::kAwait:
      if (step.value == 1 ? !Meet(collective) : !Await(step.rank, step.value)) return false;
      if (step.rank == SharedStep::kAll) tuner_.Learn(round);
      return true;
  }
  __builtin_unreachable();
}

void Executor::Move(const Collective& collective, const SharedStep& step) {
  if (step.kind == SharedStep::Kind::kReduce) return Reduce(collective, step);
  std::byte* to = At(collective, step.to);
  const std::byte* from = From(collective, step.from);
  if (to == from) return;
  if (step.to.space != Space::kBounce) {
    std::memcpy(to, from, step.bytes);
  } else if (tuner_.Streams(step.chunk)) {
    CopyToMemory(to, from, step.bytes);
  } else if (out_of_caches_) {
    CopyFromMemory(to, from, step.bytes);
  } else {
    std::memcpy(to, from, step.bytes);
  }
}

bool Executor::Meet(const Collective& collective) {
  if (!calls_.AwaitAll()) return false;
  count_ += 1;
  return !BlocksMayDiffer(collective.kind) || calls_.BytesAgree(collective.root);
}

bool Executor::Await(int only, uint64_t value) {
  awaited_ = StepValue(count_, value);
  auto step_of = [&](int r) -> const std::atomic<uint64_t>& { return segment_.area(r).step; };
  if (only == SharedStep::kAll) return waiter_.AwaitOthers(step_of, awaited_, *this);
  return waiter_.Await(only, step_of(only), awaited_, *this);
}

void Executor::Reduce(const Collective& collective, const SharedStep& step) {
  const Reduction& reduction = collective.reduction;
  bool twice = step.to.space != Space::kNone && step.also.space != Space::kNone;
  bool streams = twice && tuner_.Streams(step.chunk);
  const Place& first = step.also.space == Space::kNone || streams ? step.to : step.also;
  const Place& second = streams ? step.also : step.to;
  size_t piece = twice ? kInCache : step.bytes;
  size_t element = SizeOf(reduction.dtype);
  for (size_t at = 0; at < step.bytes; at += piece) {
    size_t bytes = std::min(piece, step.bytes - at);
    for (int r = 0; r < segment_.world_size(); ++r) {
      parts_[static_cast<size_t>(r)] = r == segment_.rank() ? From(collective, step.from) + at
                                                            : segment_.bounce(r) + step.bounce + at;
    }
    std::byte* to = At(collective, first) + at;
    comm::Reduce(reduction, to, parts_, bytes / element);
    if (!twice) continue;
    std::byte* again = At(collective, second) + at;
    if (streams) {
      CopyToMemory(again, to, bytes);
    } else {
      std::memcpy(again, to, bytes);
    }
  }
}

std::byte* Executor::At(const Collective& collective, const Place& place) const {
  if (place.space == Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return collective.outputs[static_cast<size_t>(place.index)].data + place.offset;
}

const std::byte* Executor::From(const Collective& collective, const Place& place) const {
  if (place.space == Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return collective.inputs[static_cast<size_t>(place.index)].data + place.offset;
}

// Names the ranks that are furthest behind, because the others wait for those,
// too.
std::string Executor::Missing(Duration still) const {
  uint64_t least = awaited_;
  std::vector<int> missing;
  for (int r = 0; r < segment_.world_size(); ++r) {
    uint64_t step = segment_.area(r).step.load(std::memory_order_acquire);
    if (r == segment_.rank() || HasReached(step, least + 1)) continue;
    if (step != least) missing.clear();
    least = step;
    missing.push_back(r);
  }
  bool one = missing.size() == 1;
  std::string text = segment_.NamesOf(missing) + " called it, but ";
  if (still < kStalled) return text + (one ? "has" : "have") + " not finished";
  return text + (one ? "makes" : "make") + " no progress";
}

// A rank that has finished the collective may end.
bool Executor::Needs(int rank) const {
  return rank != segment_.rank() &&
         !HasReached(segment_.area(rank).step, StepValue(count_, kLastStep));
}

}  // namespace rankrun::comm::shm
