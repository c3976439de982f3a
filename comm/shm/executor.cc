#include "comm/shm/executor.h"

#include <algorithm>
#include <cstring>

#include "base/ticks.h"
#include "comm/shm/copy.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;
using Space = Place::Space;

static_assert(kLastStep >> kStepBits == 0);

// What is written once and then copied is copied out of the first-level cache.
constexpr std::size_t kInCache = 16 * 1024;
// A program's data of this size is hardly in any cache.
constexpr uint64_t kOutOfCaches = 4 << 20;

// One wait is for two steps at most; a rank that runs does many in this time.
constexpr std::chrono::milliseconds kStandsStill{20};

// Whether the blocks of all ranks follow from those of each.
bool KnownToAll(Kind kind) {
  return kind != Kind::kGather && kind != Kind::kScatter && kind != Kind::kAllToAll;
}

uint64_t Word(uint64_t count, uint64_t step) { return count << kStepBits | step; }

}  // namespace

Executor::Executor(const Segment& segment, Waiter& waiter, Calls& calls, std::size_t buffer_bytes)
    : segment_(segment),
      waiter_(waiter),
      calls_(calls),
      buffer_bytes_(buffer_bytes),
      step_(segment.area(segment.rank()).step),
      tuner_(segment) {
  const auto n = static_cast<std::size_t>(segment.world_size());
  input_bytes_.reserve(n);
  output_bytes_.reserve(n);
  parts_.resize(n);
  steps_.reserve(MostSteps(segment.world_size()));
  // The others read it after this rank has come to a collective.
  awaited_ = Word(count_, 0);
  step_.store(awaited_, std::memory_order_relaxed);
}

Exchange Executor::ExchangeOf(const Movement& movement) {
  input_bytes_.clear();
  for (const ConstBlock& block : movement.inputs) input_bytes_.push_back(block.bytes);
  output_bytes_.clear();
  for (const Block& block : movement.outputs) output_bytes_.push_back(block.bytes);
  return Exchange{.kind = movement.kind,
                  .rank = segment_.rank(),
                  .world_size = segment_.world_size(),
                  .root = movement.root,
                  .inputs = input_bytes_,
                  .outputs = output_bytes_,
                  .buffer_bytes = buffer_bytes_,
                  .number = calls_.number(),
                  .flat = movement.flat};
}

Result<void> Executor::Run(const Movement& movement, const Call& call) {
  if (!calls_.Begin(call)) return calls_.TakeError();
  const Exchange exchange = ExchangeOf(movement);
  const Shape shape = ShapeOf(exchange);
  out_of_caches_ = shape.chunks * shape.chunk_bytes >= kOutOfCaches;
  if (KnownToAll(movement.kind)) {
    tuner_.Begin(movement.kind, shape, movement.root);
  } else {
    tuner_.Pass();
  }
  if (BlocksMayDiffer(movement.kind)) calls_.ShowBytes(input_bytes_, output_bytes_);
  for (uint64_t round = 0; round < shape.rounds; ++round) {
    tuner_.BeginRound(round);
    StepsOf(exchange, round, steps_);
    for (const SharedStep& step : steps_) {
      if (Do(movement, step, round)) continue;
      tuner_.Cancel();
      return calls_.TakeError();
    }
  }
  return {};
}

// The first step of all is to have come, told by the call itself.
bool Executor::Do(const Movement& movement, const SharedStep& step, uint64_t round) {
  switch (step.kind) {
    case SharedStep::Kind::kCopy:
    case SharedStep::Kind::kReduce: {
      const bool counts = tuner_.Counts(step.chunk);
      const uint64_t began = counts ? Ticks() : 0;
      Move(movement, step);
      if (counts) tuner_.Add(step.chunk, Ticks() - began);
      return true;
    }
    case SharedStep::Kind::kPublish:
      tuner_.EndRound(round);
      if (step.value == 1) {
        calls_.Publish();
      } else {
        waiter_.Publish(step_, Word(count_, step.value));
      }
      return true;
    case SharedStep::Kind::kAwait:
      if (step.value == 1 ? !Meet(movement) : !Await(step.rank, step.value)) return false;
      if (step.rank == SharedStep::kAll) tuner_.Learn(round);
      return true;
  }
  __builtin_unreachable();
}

void Executor::Move(const Movement& movement, const SharedStep& step) {
  if (step.kind == SharedStep::Kind::kReduce) return Reduce(movement, step);
  std::byte* to = At(movement, step.to);
  const std::byte* from = From(movement, step.from);
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

bool Executor::Meet(const Movement& movement) {
  if (!calls_.AwaitAll()) return false;
  count_ += 1;
  return !BlocksMayDiffer(movement.kind) || calls_.BytesAgree(movement.root);
}

bool Executor::Await(int only, uint64_t value) {
  awaited_ = Word(count_, value);
  const auto step_of = [&](int r) -> const std::atomic<uint64_t>& { return segment_.area(r).step; };
  if (only == SharedStep::kAll) return waiter_.AwaitOthers(step_of, awaited_, *this);
  return waiter_.Await(only, step_of(only), awaited_, *this);
}

void Executor::Reduce(const Movement& movement, const SharedStep& step) {
  const Reduction& reduction = *movement.reduction;
  const bool twice = step.to.space != Space::kNone && step.also.space != Space::kNone;
  const bool streams = twice && tuner_.Streams(step.chunk);
  const Place& first = step.also.space == Space::kNone || streams ? step.to : step.also;
  const Place& second = streams ? step.also : step.to;
  const std::size_t piece = twice ? kInCache : step.bytes;
  const std::size_t element = SizeOf(reduction.dtype);
  for (std::size_t at = 0; at < step.bytes; at += piece) {
    const std::size_t bytes = std::min(piece, step.bytes - at);
    for (int r = 0; r < segment_.world_size(); ++r) {
      parts_[static_cast<std::size_t>(r)] = r == segment_.rank()
                                                ? From(movement, step.from) + at
                                                : segment_.bounce(r) + step.bounce + at;
    }
    std::byte* to = At(movement, first) + at;
    comm::Reduce(reduction, to, parts_, bytes / element);
    if (!twice) continue;
    std::byte* again = At(movement, second) + at;
    if (streams) {
      CopyToMemory(again, to, bytes);
    } else {
      std::memcpy(again, to, bytes);
    }
  }
}

std::byte* Executor::At(const Movement& movement, const Place& place) const {
  if (place.space == Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return movement.outputs[static_cast<std::size_t>(place.index)].data + place.offset;
}

const std::byte* Executor::From(const Movement& movement, const Place& place) const {
  if (place.space == Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return movement.inputs[static_cast<std::size_t>(place.index)].data + place.offset;
}

// Those who are furthest behind: for them the others wait, too.
std::string Executor::Missing(Duration still) const {
  uint64_t least = awaited_;
  std::vector<int> missing;
  for (int r = 0; r < segment_.world_size(); ++r) {
    const uint64_t step = segment_.area(r).step.load(std::memory_order_acquire);
    if (r == segment_.rank() || HasReached(step, least + 1)) continue;
    if (step != least) missing.clear();
    least = step;
    missing.push_back(r);
  }
  const bool one = missing.size() == 1;
  std::string text = segment_.NamesOf(missing) + " came, but ";
  if (still < kStandsStill) return text + (one ? "is" : "are") + " not through with it";
  return text + (one ? "does not go on" : "do not go on");
}

// Who is through with it may end.
bool Executor::Needs(int rank) const {
  return rank != segment_.rank() && !HasReached(segment_.area(rank).step, Word(count_, kLastStep));
}

}  // namespace rankrun::comm
