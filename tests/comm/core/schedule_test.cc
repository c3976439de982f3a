// Every schedule, carried out for all ranks in one thread, against plain loops.

#include "comm/core/schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <utility>

namespace rankrun::comm {
namespace {

// Content of a block: the set of parts that were reduced into it. A missing
// part or a part reduced twice is an error.
using Value = std::multiset<int>;

struct Rank {
  Schedule schedule;
  std::map<int, Value> inputs = {};
  std::map<int, Value> outputs = {};
  std::map<int, Value> scratch = {};
  size_t next = 0;
  bool sent = false;  // whether the step `next` has sent its data

  Value& At(const Part& part) {
    switch (part.place) {
      case Part::Place::kInput:
        return inputs.at(part.index);
      case Part::Place::kOutput:
        return outputs[part.index];
      case Part::Place::kScratch:
        return scratch[part.index];
    }
    __builtin_unreachable();
  }
  bool done() const { return next == schedule.size(); }
};

Value Together(Value a, const Value& b) {
  a.insert(b.begin(), b.end());
  return a;
}

class World {
 public:
  World(int ranks, Schedule (*make)(const RankPlace&), int root = 0) {
    for (int r = 0; r < ranks; ++r) {
      ranks_.push_back({.schedule = make({r, ranks, root})});
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& operator[](int r) { return ranks_[static_cast<size_t>(r)]; }

  // Returns whether all ranks finished and no message is left.
  bool Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < size(); ++r) {
        while (!(*this)[r].done() && Move(r)) moved = true;
      }
    }
    for (int r = 0; r < size(); ++r) {
      if (!(*this)[r].done()) return false;
    }
    for (const auto& [ends, queue] : lines_) {
      if (!queue.empty()) return false;
    }
    return true;
  }

 private:
  bool Move(int r) {
    Rank& rank = (*this)[r];
    const Step& step = rank.schedule[rank.next];
    if (step.kind == Step::Kind::kCopy) {
      rank.At(step.to) = Value(rank.At(step.from));
      rank.next += 1;
      return true;
    }
    bool moved = false;
    if (step.send_to != Step::kNobody && !std::exchange(rank.sent, true)) {
      lines_[{r, step.send_to}].push_back(rank.At(step.from));
      moved = true;
    }
    if (step.receive_from != Step::kNobody) {
      auto& line = lines_[{step.receive_from, r}];
      if (line.empty()) return moved;
      Value got = line.front();
      line.pop_front();
      rank.At(step.to) = step.with ? Together(got, rank.At(*step.with)) : got;
      if (step.completes) {
        EXPECT_EQ(rank.At(step.to).size(), ranks_.size());
      }
    }
    rank.next += 1;
    rank.sent = false;
    return true;
  }

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Value>> lines_;  // by sender and receiver
};

struct ScheduleTest : testing::TestWithParam<int> {
  int ranks() const { return GetParam(); }
  // Returns part `i` of rank `r`.
  static int Of(int r, int i) { return r * 100 + i; }
  Value Reduced(int i) const {
    Value all;
    for (int r = 0; r < ranks(); ++r) all.insert(Of(r, i));
    return all;
  }
};

TEST_P(ScheduleTest, AllGatherPutsEveryInputInItsPlace) {
  World world(ranks(), AllGatherPairwise);
  for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = {Of(r, 0)};
  ASSERT_TRUE(world.Run());
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Value{Of(i, 0)});
  }
}

TEST_P(ScheduleTest, AllToAllIsTheTransposition) {
  World world(ranks(), AllToAllPairwise);
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = {Of(r, i)};
  }
  ASSERT_TRUE(world.Run());
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Value{Of(i, r)});
  }
}

TEST_P(ScheduleTest, GatherAndScatterAreOneAnothersReverse) {
  for (int root = 0; root < ranks(); ++root) {
    World gather(ranks(), GatherLinear, root);
    World scatter(ranks(), ScatterLinear, root);
    for (int r = 0; r < ranks(); ++r) {
      gather[r].inputs[0] = {Of(r, 0)};
      scatter[root].inputs[r] = {Of(root, r)};
    }
    ASSERT_TRUE(gather.Run());
    ASSERT_TRUE(scatter.Run());
    for (int r = 0; r < ranks(); ++r) {
      EXPECT_EQ(gather[root].outputs[r], Value{Of(r, 0)});
      EXPECT_EQ(scatter[r].outputs[0], Value{Of(root, r)});
    }
  }
}

TEST_P(ScheduleTest, BroadcastReachesAllFromEveryRoot) {
  for (int root = 0; root < ranks(); ++root) {
    World world(ranks(), BroadcastTree, root);
    for (int r = 0; r < ranks(); ++r) world[r].outputs[0] = {Of(r, 0)};
    ASSERT_TRUE(world.Run());
    for (int r = 0; r < ranks(); ++r) EXPECT_EQ(world[r].outputs[0], Value{Of(root, 0)});
  }
}

TEST_P(ScheduleTest, AllReduceHasEveryRanksShareOnceInEveryPart) {
  World world(ranks(), AllReduceRing);
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) world[r].outputs[i] = {Of(r, i)};
  }
  ASSERT_TRUE(world.Run());
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Reduced(i));
  }
}

TEST_P(ScheduleTest, ReduceScatterGivesEachRankItsPartAndLeavesInputs) {
  World world(ranks(), ReduceScatterRing);
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = {Of(r, i)};
  }
  ASSERT_TRUE(world.Run());
  for (int r = 0; r < ranks(); ++r) {
    EXPECT_EQ(world[r].outputs[0], Reduced(r));
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].inputs[i], Value{Of(r, i)});
  }
}

TEST_P(ScheduleTest, ReduceGivesTheRootAllPartsAndWritesNoOutputElsewhere) {
  for (int root = 0; root < ranks(); ++root) {
    World world(ranks(), ReduceRing, root);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = {Of(r, i)};
    }
    ASSERT_TRUE(world.Run());
    for (int r = 0; r < ranks(); ++r) {
      EXPECT_EQ(world[r].outputs.empty(), r != root);
      for (int i = 0; i < ranks(); ++i) {
        EXPECT_EQ(world[r].inputs[i], Value{Of(r, i)});
        if (r == root) {
          EXPECT_EQ(world[r].outputs[i], Reduced(i));
        }
      }
    }
  }
}

TEST_P(ScheduleTest, NobodyLeavesABarrierThatOneHasNotEntered) {
  for (int absent = 0; absent < ranks(); ++absent) {
    World world(ranks(), BarrierDissemination);
    for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = {};
    World whole = world;
    EXPECT_TRUE(whole.Run());
    // Operation that never sends or receives.
    world[absent].schedule = {{.to = {Part::Place::kOutput, 0}, .receive_from = absent}};
    world.Run();
    for (int r = 0; r < ranks(); ++r) EXPECT_FALSE(world[r].done()) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleTest, testing::Range(1, 10));

}  // namespace
}  // namespace rankrun::comm
