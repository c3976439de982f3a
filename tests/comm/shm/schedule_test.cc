#include "comm/shm/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace rankrun::comm::shm {
namespace {

using Kind = Operation::Kind;
using Space = Place::Space;
using Bytes = std::vector<uint8_t>;
using Sizes = std::vector<size_t>;

constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kReduce,  Kind::kBroadcast,
                           Kind::kAllGather, Kind::kGather,  Kind::kScatter,
                           Kind::kAllToAll,  Kind::kBarrier, Kind::kReduceScatter};

// Vector clock: per rank, the number of its events that are known.
using Clock = std::vector<uint64_t>;

// Byte of bounce memory with its last uses.
struct Cell {
  uint8_t value = 0;
  uint64_t written = 0;  // event of the owner's last write; 0: never
  Clock read;            // event of each rank's last read
};

struct RankState {
  Exchange exchange;
  std::vector<Bytes> inputs = {};
  std::vector<Bytes> outputs = {};
  std::vector<Cell> bounce = {};
  Clock clock = {};
  std::vector<std::pair<uint64_t, Clock>> published = {};  // value, and the clock at that time
  std::vector<SharedStep> steps = {};
  size_t next = 0;
  uint64_t round = 0;
  uint64_t calls = 0;  // number of completed calls
};

// Calls of each collective in a row, so that buffers are used again.
constexpr uint64_t kCalls = 4;

// Carries out the schedules of all ranks in one thread, in an unfair order, on
// bytes that reductions add up. Published steps must order each use of bounce
// memory after the earlier ones.
class Interpreter {
 public:
  explicit Interpreter(std::vector<RankState> ranks) : ranks_(std::move(ranks)) {}

  void Run(unsigned seed) {
    for (size_t idle = 0; idle < 2 * ranks_.size();) {
      seed = seed * 1664525 + 1013904223;
      size_t begin = seed >> 16;
      idle += 1;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        size_t rank = (begin + i) % ranks_.size();
        if (!Advance(rank)) continue;
        idle = 0;
        break;
      }
    }
    for (const RankState& state : ranks_) {
      EXPECT_EQ(state.calls, kCalls) << "rank " << state.exchange.rank << " waits";
    }
  }
  const std::vector<RankState>& ranks() const { return ranks_; }

 private:
  // Returns whether the rank could do a step.
  bool Advance(size_t rank) {
    RankState& state = ranks_[rank];
    if (state.calls == kCalls) return false;
    if (state.steps.empty()) {
      StepsOf(state.exchange, state.round, state.steps);
      EXPECT_LE(state.steps.size(), MaxSteps(state.exchange.world_size));
      state.next = 0;
    }
    const SharedStep& step = state.steps[state.next];
    if (step.kind == SharedStep::Kind::kAwait && !HasCome(rank, step)) return false;
    state.clock[rank] += 1;
    Do(rank, step);
    if (++state.next < state.steps.size()) return true;
    state.steps.clear();
    state.round += 1;
    if (state.round < ShapeOf(state.exchange).rounds) return true;
    state.round = 0;
    state.exchange.number = ++state.calls;
    return true;
  }

  // Larger for later calls.
  uint64_t Value(size_t rank, const SharedStep& step) const {
    return ranks_[rank].calls << 32 | step.value;
  }

  bool HasCome(size_t rank, const SharedStep& step) {
    Clock seen = ranks_[rank].clock;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (r == rank || (step.rank != SharedStep::kAll && static_cast<size_t>(step.rank) != r)) {
        continue;
      }
      const auto& published = ranks_[r].published;
      auto found = std::find_if(published.begin(), published.end(), [&](const auto& entry) {
        return entry.first >= Value(rank, step);
      });
      if (found == published.end()) return false;
      for (size_t i = 0; i < seen.size(); ++i) {
        seen[i] = std::max(seen[i], found->second[i]);
      }
    }
    ranks_[rank].clock = seen;
    return true;
  }

  void Do(size_t rank, const SharedStep& step) {
    RankState& state = ranks_[rank];
    if (step.kind == SharedStep::Kind::kPublish) {
      state.published.emplace_back(Value(rank, step), state.clock);
    }
    if (step.kind == SharedStep::Kind::kCopy) {
      for (size_t i = 0; i < step.bytes; ++i) Write(rank, step.to, i, Read(rank, step.from, i));
    }
    if (step.kind != SharedStep::Kind::kReduce) return;
    for (size_t i = 0; i < step.bytes; ++i) {
      uint8_t sum = 0;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        Place other{Space::kBounce, static_cast<int>(r), step.bounce};
        sum = static_cast<uint8_t>(sum + Read(rank, r == rank ? step.from : other, i));
      }
      if (step.to.space != Space::kNone) Write(rank, step.to, i, sum);
      if (step.also.space != Space::kNone) Write(rank, step.also, i, sum);
    }
  }

  uint8_t Read(size_t rank, const Place& place, size_t i) {
    auto index = static_cast<size_t>(place.index);
    if (place.space == Space::kInput) return ranks_[rank].inputs.at(index).at(place.offset + i);
    EXPECT_EQ(place.space, Space::kBounce);
    Cell& cell = ranks_.at(index).bounce.at(place.offset + i);
    EXPECT_GT(cell.written, 0u) << "read before it was written";
    EXPECT_LE(cell.written, ranks_[rank].clock[index]) << "not ordered after its write";
    cell.read.resize(ranks_.size());
    cell.read[rank] = ranks_[rank].clock[rank];
    return cell.value;
  }

  void Write(size_t rank, const Place& place, size_t i, uint8_t value) {
    auto index = static_cast<size_t>(place.index);
    RankState& state = ranks_[rank];
    if (place.space == Space::kOutput) {
      state.outputs.at(index).at(place.offset + i) = value;
      return;
    }
    EXPECT_EQ(index, rank) << "bounce memory of another rank";
    Cell& cell = state.bounce.at(place.offset + i);
    for (size_t r = 0; r < cell.read.size(); ++r) {
      EXPECT_LE(cell.read[r], state.clock[r]) << "not ordered after a read";
    }
    cell.value = value;
    cell.written = state.clock[rank];
  }

  std::vector<RankState> ranks_;
};

struct Case {
  Kind kind;
  int ranks;
  int root;
  size_t bytes;
  size_t buffer;
  bool flat;
  bool uneven;
};

uint8_t ValueOf(int from, int to, size_t i) {
  return static_cast<uint8_t>(from * 37 + to * 11 + static_cast<int>(i % 251) + 1);
}

bool OneBlock(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kBroadcast;
}

// Returns the bytes that a rank sends to another.
size_t BytesFor(const Case& c, int from, int to) {
  if (!c.uneven || OneBlock(c.kind)) return c.bytes;
  auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  switch (c.kind) {
    case Kind::kAllGather:
    case Kind::kGather:
      return c.bytes * (f % 3);
    case Kind::kScatter:
    case Kind::kReduceScatter:
      return c.bytes * (t % 3);
    default:
      return c.bytes * ((f + 2 * t) % 4);
  }
}

Bytes Block(int from, int to, size_t bytes) {
  Bytes block(bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = ValueOf(from, to, i);
  return block;
}

std::vector<Bytes> InputsOf(const Case& c, int rank) {
  std::vector<Bytes> inputs;
  if (c.kind == Kind::kBarrier || (c.kind == Kind::kScatter && rank != c.root)) return inputs;
  bool one = OneBlock(c.kind) || c.kind == Kind::kAllGather || c.kind == Kind::kGather;
  for (int r = 0; r < (one ? 1 : c.ranks); ++r) {
    inputs.push_back(Block(rank, one ? 0 : r, BytesFor(c, rank, one ? c.root : r)));
  }
  return inputs;
}

// Naive schedule, in which each rank reads the inputs of all ranks directly.
std::vector<Bytes> Expected(const Case& c, int rank, const std::vector<std::vector<Bytes>>& in) {
  std::vector<Bytes> outputs;
  auto sum = [&](size_t block) {
    Bytes total(in[0][block].size());
    for (const auto& inputs : in) {
      for (size_t i = 0; i < total.size(); ++i) {
        total[i] = static_cast<uint8_t>(total[i] + inputs[block][i]);
      }
    }
    return total;
  };
  auto root = static_cast<size_t>(c.root), me = static_cast<size_t>(rank);
  if (c.kind == Kind::kAllReduce) return {sum(0)};
  if (c.kind == Kind::kReduce) return {rank == c.root ? sum(0) : Bytes(c.bytes)};
  if (c.kind == Kind::kBroadcast) return {rank == c.root ? Bytes(c.bytes) : in[root][0]};
  if (c.kind == Kind::kScatter) return {in[root][me]};
  if (c.kind == Kind::kReduceScatter) return {sum(me)};
  if (c.kind == Kind::kBarrier || (c.kind == Kind::kGather && rank != c.root)) return {};
  for (const auto& inputs : in) outputs.push_back(inputs[inputs.size() == 1 ? 0 : me]);
  return outputs;
}

void Check(const Case& c) {
  SCOPED_TRACE("kind " + std::to_string(static_cast<int>(c.kind)) + ", ranks " +
               std::to_string(c.ranks) + ", root " + std::to_string(c.root) + ", bytes " +
               std::to_string(c.bytes) + ", buffer " + std::to_string(c.buffer) +
               (c.flat ? ", flat" : "") + (c.uneven ? ", uneven" : ""));
  std::vector<std::vector<Bytes>> inputs, outputs;
  std::vector<Sizes> sizes(2 * static_cast<size_t>(c.ranks));
  for (int r = 0; r < c.ranks; ++r) inputs.push_back(InputsOf(c, r));
  for (int r = 0; r < c.ranks; ++r) outputs.push_back(Expected(c, r, inputs));
  std::vector<RankState> states;
  for (size_t r = 0; r < inputs.size(); ++r) {
    for (const Bytes& block : inputs[r]) sizes[2 * r].push_back(block.size());
    for (const Bytes& block : outputs[r]) sizes[2 * r + 1].push_back(block.size());
    RankState state{
        .exchange = {.kind = c.kind, .rank = static_cast<int>(r), .world_size = c.ranks}};
    state.exchange.root = c.root;
    state.exchange.inputs = sizes[2 * r];
    state.exchange.outputs = sizes[2 * r + 1];
    state.exchange.buffer_bytes = c.buffer;
    state.exchange.flat = c.flat;
    state.inputs = inputs[r];
    for (const Bytes& block : outputs[r]) state.outputs.emplace_back(block.size());
    state.bounce.resize(kBuffers * c.buffer);
    state.clock.resize(inputs.size());
    states.push_back(std::move(state));
  }
  Interpreter interpreter(std::move(states));
  interpreter.Run(static_cast<unsigned>(c.bytes + c.buffer));
  for (size_t r = 0; r < outputs.size(); ++r) {
    EXPECT_EQ(interpreter.ranks()[r].outputs, outputs[r]) << "rank " << r;
  }
}

void CheckAll(int ranks) {
  auto p = static_cast<size_t>(ranks);
  size_t unit = 64 * p;  // smallest buffer size
  for (Kind kind : kKinds) {
    for (size_t count : {size_t{0}, size_t{1}, p - 1, p, p + 1, 3 * p + 5}) {
      for (size_t bytes : {count, count * 8, count * 67}) {
        int root = static_cast<int>((bytes + 1) % p);
        for (size_t buffer : {unit, 3 * unit + 64}) {
          Check({kind, ranks, root, bytes, buffer, false, false});
          Check({kind, ranks, root, bytes, buffer, false, true});
          Check({kind, ranks, root, bytes, buffer, true, false});
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

class ShmScheduleTest : public testing::TestWithParam<int> {};

TEST_P(ShmScheduleTest, EqualsTheNaiveSchedule) { CheckAll(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ranks, ShmScheduleTest, testing::Range(1, 10));

TEST(ShmScheduleShapeTest, SmallDataNeedsOnlyTheCall) {
  Sizes block{4096};
  Exchange exchange{.kind = Kind::kAllReduce, .rank = 0, .world_size = 4};
  exchange.inputs = exchange.outputs = block;
  exchange.buffer_bytes = 65'536;
  exchange.flat = true;
  EXPECT_EQ(ShapeOf(exchange).rounds, 2u);
  exchange.flat = false;
  EXPECT_EQ(ShapeOf(exchange).rounds, 3u);
}

}  // namespace
}  // namespace rankrun::comm::shm
