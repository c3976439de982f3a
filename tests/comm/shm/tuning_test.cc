#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "comm/shm/chunk_tuner.h"
#include "comm/shm/copy.h"
#include "comm/shm/streaming.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

// Costs of a chunk for processors that are near each other, and far apart.
struct Costs {
  uint64_t cached;
  uint64_t streamed;
};
constexpr Costs kNear{.cached = 1000, .streamed = 1500};
constexpr Costs kFar{.cached = 4000, .streamed = 1200};

// Returns how many of `chunks` chunks were streamed.
int Streamed(StreamingChoice& choice, const Costs& costs, int chunks) {
  int streamed = 0;
  for (int i = 0; i < chunks; ++i) {
    auto next = choice.ForNextChunk();
    streamed += next.streams ? 1 : 0;
    choice.Learn(next.streams, next.streams ? costs.streamed : costs.cached);
  }
  return streamed;
}

TEST(StreamingChoiceTest, TheCheaperWayIsUsedExceptForTrials) {
  StreamingChoice near;
  EXPECT_EQ(Streamed(near, kNear, 40), 8);  // the first trial
  Streamed(near, kNear, 10'000);
  EXPECT_LT(Streamed(near, kNear, 10'000), 100);
  StreamingChoice far;
  Streamed(far, kFar, 100);
  Streamed(far, kFar, 10'000);
  EXPECT_GT(Streamed(far, kFar, 10'000), 9'900);
}

TEST(StreamingChoiceTest, AChangeIsNoticedAtTheNextTrialOrAtOnce) {
  StreamingChoice choice;
  Streamed(choice, kNear, 10'000);
  EXPECT_GT(Streamed(choice, kFar, 100), 80)
      << "the way in use got slower: noticed after a few chunks";
  Streamed(choice, kFar, 10'000);
  Streamed(choice, kNear, 1100);
  EXPECT_LT(Streamed(choice, kNear, 1000), 100) << "the other way got faster: noticed by a trial";
}

TEST(StreamingChoiceTest, OneSlowChunkDoesNotCount) {
  StreamingChoice choice;
  Streamed(choice, kNear, 1000);
  choice.Learn(false, 1'000'000);
  EXPECT_FALSE(choice.ForNextChunk().streams);
}

TEST(StreamingChoiceTest, OneOfEightCostsIsMeasuredAndOneOfEachTrial) {
  StreamingChoice choice;
  int counted = 0, tried = 0;
  for (int i = 0; i < 40; ++i) {
    auto next = choice.ForNextChunk();
    counted += next.counts ? 1 : 0;
    tried += next.counts && next.streams ? 1 : 0;
  }
  EXPECT_EQ(counted, 5);
  EXPECT_EQ(tried, 1);
}

using Copying = void (*)(std::byte*, const std::byte*, size_t);

void CheckCopies(Copying copy) {
  constexpr size_t kRoom = 20'000;
  alignas(64) static std::byte from[kRoom + 64], to[kRoom + 128];
  std::minstd_rand random(1);
  for (std::byte& each : from) each = static_cast<std::byte>(random());
  for (size_t bytes : {0u, 1u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 12'345u, 20'000u}) {
    for (size_t from_at : {0u, 1u, 16u, 60u}) {
      for (size_t to_at : {0u, 4u, 64u}) {
        std::ranges::fill(to, std::byte{0xa5});
        copy(to + to_at, from + from_at, bytes);
        EXPECT_EQ(std::memcmp(to + to_at, from + from_at, bytes), 0) << bytes;
        EXPECT_EQ(to[to_at + bytes], std::byte{0xa5}) << bytes;
        if (to_at > 0) {
          EXPECT_EQ(to[to_at - 1], std::byte{0xa5}) << bytes;
        }
      }
    }
  }
}

TEST(ShmCopyTest, AllBytesAreCopiedAndNoMore) {
  CheckCopies(CopyFromMemory);
  CheckCopies(CopyToMemory);
}

// Holds for random costs and a random sequence of collectives, some of which
// one rank refuses after the others have begun them.
TEST(ChunkTunerTest, AllRanksChooseAlike) {
  constexpr int kRanks = 3;
  constexpr uint64_t kCalls = 3000;
  constexpr Operation::Kind kKinds[] = {Operation::Kind::kAllReduce, Operation::Kind::kReduce,
                                        Operation::Kind::kBroadcast};
  std::vector<std::vector<bool>> chosen(kRanks);
  std::barrier together(kRanks);
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(kRanks, [&](int rank) {
    MemoryStore store(keys);
    auto segment = Segment::Meet(ShmConfig(store, rank, kRanks), SegmentLayout::kPage);
    if (!segment) ADD_FAILURE() << segment.error().message;
    ChunkTuner tuner(**segment);
    std::minstd_rand calls(1);  // the same on all ranks
    std::minstd_rand costs(static_cast<unsigned>(rank) + 2);
    for (uint64_t number = 1; number <= kCalls; ++number) {
      uint64_t behind = 1 + calls() % 2;
      uint64_t chunks = 1 + calls() % 5;
      auto kind = kKinds[calls() % std::size(kKinds)];
      int root = static_cast<int>(calls() % kRanks);
      Shape shape{.rounds = std::max<uint64_t>(2, chunks + behind),
                  .chunks = chunks,
                  .behind = behind,
                  .chunk_bytes = size_t{2048} << calls() % 8};
      bool one_writes = kind == Operation::Kind::kBroadcast && chunks > 1;
      if (calls() % 8 == 0) {
        tuner.SkipCollective();
        together.arrive_and_wait();
        if (calls() % 2 == 0) tuner.Learn(1);
        continue;
      }
      bool refused = calls() % 8 == 0;
      if (refused && rank == 1) continue;
      tuner.Begin(kind, shape, root);
      if (refused) {
        tuner.BeginRound(0);
        tuner.EndRound(0);
        tuner.Cancel();
        continue;
      }
      for (uint64_t round = 0; round < shape.rounds; ++round) {
        tuner.BeginRound(round);
        if (round > 0) {
          together.arrive_and_wait();
          // In such Broadcasts only the root waits for all ranks in each round.
          if (round == 1 || !one_writes || rank == root) tuner.Learn(round);
        }
        if (round < chunks) {
          if (!one_writes) chosen[static_cast<size_t>(rank)].push_back(tuner.Streams(round));
          bool far = number / 500 % 2 == 1;
          const Costs& now = far ? kFar : kNear;
          uint64_t cost = tuner.Streams(round) ? now.streamed : now.cached;
          if (tuner.Counts(round)) tuner.Add(round, (cost + costs() % 200) * shape.chunk_bytes);
        }
        tuner.EndRound(round);
      }
    }
  });
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_EQ(chosen[0], chosen[2]);
  auto streamed = std::ranges::count(chosen[0], true);
  EXPECT_GT(streamed, std::ssize(chosen[0]) / 10);
  EXPECT_LT(streamed, std::ssize(chosen[0]) * 9 / 10);
}

// Enough chunks for trials of the other way.
TEST(ChunkTunerTest, ResultsAreRightHoweverChunksAreWritten) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 200'000;
  constexpr int kCalls = 40;
  RunShmRanks(kRanks, [](ShmRank& me) {
    for (int call = 0; call < kCalls; ++call) {
      std::vector<float> data(kCount);
      for (size_t i = 0; i < kCount; ++i) {
        data[i] = static_cast<float>(me.rank() + call + static_cast<int>(i % 1000));
      }
      auto done = me.Sum(data);
      ASSERT_TRUE(done) << done.error().message;
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(data[i], static_cast<float>(3 + 3 * (call + static_cast<int>(i % 1000)))) << i;
      }
    }
  });
}

}  // namespace
}  // namespace rankrun::comm::shm
