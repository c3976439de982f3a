#include "agent/health/peer_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace rankrun::agent {
namespace {

// Rank r waits for the rank that `peers` has at r; -1: for none. Each two ranks are connected.
std::map<int, WorkerSample> Waiting(const std::vector<int>& peers) {
  auto id_of = [](int a, int b) {
    return static_cast<uint64_t>(std::min(a, b) * 100 + std::max(a, b));
  };
  std::map<int, WorkerSample> workers;
  const int size = static_cast<int>(peers.size());
  for (int rank = 0; rank < size; ++rank) {
    WorkFacts work{.knows_connections = true};
    for (int other = 0; other < size; ++other) {
      if (other != rank) work.connections.push_back({.id = id_of(rank, other)});
    }
    const int peer = peers[static_cast<size_t>(rank)];
    if (peer >= 0) work.awaited_connection = id_of(rank, peer);
    workers[rank] = {.global_rank = rank, .pid = 1, .work = std::move(work)};
  }
  return workers;
}

TEST(PeerWaitsTest, TheEndOfAllChainsIsAwaited) {
  EXPECT_EQ(AwaitedByAll(Waiting({1, -1, 1})), 1);
  EXPECT_EQ(AwaitedByAll(Waiting({1, 2, 3, -1})), 3);
}

TEST(PeerWaitsTest, AChainOfTenThousandIsFollowedToItsEnd) {
  constexpr int kSize = 10'000;
  std::map<int, WorkerSample> workers;
  for (int rank = 0; rank < kSize; ++rank) {
    const auto id = static_cast<uint64_t>(rank) + 1;
    WorkFacts work{.knows_connections = true, .connections = {{.id = id}, {.id = id + 1}}};
    if (rank + 1 < kSize) work.awaited_connection = id + 1;
    workers[rank] = {.global_rank = rank, .pid = 1, .work = std::move(work)};
  }
  EXPECT_EQ(AwaitedByAll(workers), kSize - 1);
  workers.at(kSize - 1).work->awaited_connection = 2;
  EXPECT_EQ(AwaitedByAll(workers), std::nullopt) << "a dead-lock";
}

TEST(PeerWaitsTest, NobodyIsAwaitedByAllIfAnotherWaitsForSomethingElse) {
  EXPECT_EQ(AwaitedByAll(Waiting({1, -1, -1})), std::nullopt);
  EXPECT_EQ(AwaitedByAll(Waiting({1, 0, -1})), std::nullopt) << "two wait for each other";
  EXPECT_EQ(AwaitedByAll(Waiting({1, 2, 0})), std::nullopt) << "a dead-lock";
  EXPECT_EQ(AwaitedByAll(Waiting({-1})), std::nullopt);
  EXPECT_EQ(AwaitedByAll({}), std::nullopt);
}

TEST(PeerWaitsTest, AWorkerThatHasEndedWaitsForNobody) {
  auto workers = Waiting({1, -1, -1});
  workers[2].has_ended = true;
  EXPECT_EQ(AwaitedByAll(workers), 1);
}

TEST(PeerWaitsTest, AConnectionToAnotherProgramIsNoWaitForAWorker) {
  auto workers = Waiting({1, -1, 1});
  workers[0].work->awaited_connection = 9'999;
  EXPECT_EQ(AwaitedByAll(workers), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
