#include "comm/shm/executor.h"

#include <algorithm>
#include <cstring>

namespace rankrun::comm {
namespace {

static_assert(kLastStep >> kStepBits == 0);

// What is written once and then copied is copied out of the first-level cache.
constexpr std::size_t kInCache = 16 * 1024;

uint64_t Word(uint64_t number, uint64_t step) { return number << kStepBits | step; }

}  // namespace

Executor::Executor(const Segment& segment, Waiter& waiter, Calls& calls, std::size_t buffer_bytes)
    : segment_(segment),
      waiter_(waiter),
      calls_(calls),
      buffer_bytes_(buffer_bytes),
      step_(segment.area(segment.rank()).step) {
  const auto n = static_cast<std::size_t>(segment.world_size());
  input_bytes_.reserve(n);
  output_bytes_.reserve(n);
  parts_.resize(n);
  steps_.reserve(MostSteps(segment.world_size()));
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
  const uint64_t rounds = Rounds(exchange);
  if (MayBeUneven(movement.kind) || movement.kind == Operation::Kind::kReduceScatter) {
    calls_.ShowBytes(input_bytes_, output_bytes_);
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    StepsOf(exchange, round, steps_);
    for (const SharedStep& step : steps_) {
      if (!Do(movement, step)) return calls_.TakeError();
    }
  }
  return {};
}

// The first step of all is to have come, told by the call itself.
bool Executor::Do(const Movement& movement, const SharedStep& step) {
  switch (step.kind) {
    case SharedStep::Kind::kCopy: {
      std::byte* to = At(movement, step.to);
      const std::byte* from = From(movement, step.from);
      if (to != from) std::memcpy(to, from, step.bytes);
      return true;
    }
    case SharedStep::Kind::kReduce:
      Reduce(movement, step);
      return true;
    case SharedStep::Kind::kPublish:
      if (step.value == 1) {
        calls_.Publish();
      } else {
        waiter_.Publish(step_, Word(calls_.number(), step.value));
      }
      return true;
    case SharedStep::Kind::kAwait:
      return step.value == 1 ? Meet(movement) : Await(step.rank, step.value);
  }
  __builtin_unreachable();
}

bool Executor::Meet(const Movement& movement) {
  if (!calls_.AwaitAll()) return false;
  const bool shown = MayBeUneven(movement.kind) || movement.kind == Operation::Kind::kReduceScatter;
  return !shown || calls_.BytesAgree(movement.root);
}

bool Executor::Await(int only, uint64_t value) {
  awaited_ = Word(calls_.number(), value);
  for (int r = 0; r < segment_.world_size(); ++r) {
    if (r == segment_.rank() || (only != SharedStep::kAll && r != only)) continue;
    if (!waiter_.Await(r, segment_.area(r).step, awaited_, *this)) return false;
  }
  return true;
}

void Executor::Reduce(const Movement& movement, const SharedStep& step) {
  const Reduction& reduction = *movement.reduction;
  const bool twice = step.to.space != Place::Space::kNone && step.also.space != Place::Space::kNone;
  const Place& first = step.also.space != Place::Space::kNone ? step.also : step.to;
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
    if (twice) std::memcpy(At(movement, step.to) + at, to, bytes);
  }
}

std::byte* Executor::At(const Movement& movement, const Place& place) const {
  if (place.space == Place::Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return movement.outputs[static_cast<std::size_t>(place.index)].data + place.offset;
}

const std::byte* Executor::From(const Movement& movement, const Place& place) const {
  if (place.space == Place::Space::kBounce) return segment_.bounce(place.index) + place.offset;
  return movement.inputs[static_cast<std::size_t>(place.index)].data + place.offset;
}

// Those who are furthest behind: for them the others wait, too.
std::string Executor::Missing() const {
  uint64_t least = awaited_;
  std::vector<int> missing;
  for (int r = 0; r < segment_.world_size(); ++r) {
    const uint64_t step = segment_.area(r).step.load(std::memory_order_acquire);
    if (r == segment_.rank() || step > least) continue;
    if (step < least) missing.clear();
    least = step;
    missing.push_back(r);
  }
  const char* end = missing.size() == 1 ? " came, but does not go on" : " came, but do not go on";
  return calls_.Name() + ": " + segment_.NamesOf(missing) + end;
}

// Who is through with it may end.
bool Executor::Needs(int rank) const {
  return rank != segment_.rank() && segment_.area(rank).step.load(std::memory_order_acquire) <
                                        Word(calls_.number(), kLastStep);
}

}  // namespace rankrun::comm
