// Messages between two ranks of a backend.

#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/comm/backend_calls.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Pending = std::unique_ptr<Transfer>;

constexpr size_t kLarge = 8 << 20;  // more than socket buffers hold

struct TransportMessagesTest : testing::TestWithParam<const char*> {
  static BackendGroup Group(int ranks) { return {GetParam(), ranks}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, TransportMessagesTest, testing::ValuesIn(kBackends),
                         NameOfBackend);

Envelope Tagged(uint64_t tag, DType dtype = DType::kInt32) { return {.tag = tag, .dtype = dtype}; }

std::vector<int> Counting(int first, size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

Pending Send(Backend& backend, const std::vector<int>& values, int to, uint64_t tag = 0) {
  auto transfer = backend.StartSend(ConstBlockOf(values), to, Tagged(tag));
  EXPECT_TRUE(transfer);
  return *std::move(transfer);
}

Pending Recv(Backend& backend, std::vector<int>& values, std::optional<int> from,
             uint64_t tag = 0) {
  auto transfer = backend.StartRecv(BlockOf(values), from, Tagged(tag));
  EXPECT_TRUE(transfer);
  return *std::move(transfer);
}

void ExpectOver(const Pending& transfer) {
  auto ok = transfer->Wait(seconds(60));
  EXPECT_TRUE(ok) << ok.error().message;
}

TEST_P(TransportMessagesTest, EverySizeArrivesWholeAndInTheOrderSent) {
  std::vector<size_t> sizes{0, 1, 239, 240, 241, 1000, 100'000, kLarge / sizeof(int), 3};
  Group(2).Run([&](Backend& backend, int rank) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto wanted = Counting(static_cast<int>(i), sizes[i]);
      if (rank == 0) {
        ExpectOver(Send(backend, wanted, 1));
      } else {
        std::vector<int> got(sizes[i]);
        auto transfer = Recv(backend, got, 0);
        ExpectOver(transfer);
        EXPECT_EQ(got, wanted);
        EXPECT_EQ(transfer->source(), 0);
      }
    }
  });
}

TEST_P(TransportMessagesTest, RanksMaySendShortMessagesBeforeTheyReceive) {
  Group(2).Run([&](Backend& backend, int rank) {
    for (size_t count : {0UL, 2UL, 1000UL, 16'384UL}) {
      auto wanted = Counting(1 - rank, count);
      std::vector<int> got(count);
      ExpectOver(Send(backend, Counting(rank, count), 1 - rank));
      ExpectOver(Recv(backend, got, 1 - rank));
      EXPECT_EQ(got, wanted);
    }
  });
}

TEST_P(TransportMessagesTest, ShortMessagesOfARankThatHasLeftArrive) {
  constexpr int kMessages = 10;
  Group(2).Run([&](Backend& backend, int rank) {
    for (int i = 0; i < kMessages; ++i) {
      auto wanted = Counting(i, 1000);
      if (rank == 0) {
        ExpectOver(Send(backend, wanted, 1));
        continue;
      }
      std::vector<int> got(1000);
      ExpectOver(Recv(backend, got, 0));
      EXPECT_EQ(got, wanted);
    }
  });
}

TEST_P(TransportMessagesTest, ThereIsRoomForSomeShortMessagesOnly) {
  constexpr size_t kCount = 16'000;  // 64 KB
  constexpr size_t kMaxSent = 2000;
  std::atomic<size_t> sent = 0;
  Turn full;
  Group(2).Run([&](Backend& backend, int rank) {
    auto values = Counting(rank, kCount);
    if (rank == 0) {
      Pending last = Send(backend, values, 1);
      for (sent = 1; sent < kMaxSent && last->Wait(milliseconds(100)); ++sent) {
        last = Send(backend, values, 1);
      }
      full.Pass();
      return ExpectOver(last);
    }
    full.Await();
    for (size_t i = 0; i < sent; ++i) ExpectOver(Recv(backend, values, 0));
  });
  EXPECT_GT(sent, 10U);
  EXPECT_LT(sent, kMaxSent);
}

TEST_P(TransportMessagesTest, ReceivesMeetMessagesOfTheirTagInTheOrderStarted) {
  Group(2).Run([&](Backend& backend, int rank) {
    std::vector<Pending> pending;
    std::vector<std::vector<int>> values;
    for (int i = 0; i < 6; ++i) values.push_back(rank == 0 ? Counting(i, 1) : Counting(-1, 1));
    // Sent with tags 0 1 0 1 0 1; received: first all of tag 1, then all of tag
    // 0.
    for (size_t i = 0; i < 6; ++i) {
      pending.push_back(rank == 0 ? Send(backend, values[i], 1, i % 2)
                                  : Recv(backend, values[i], 0, i < 3 ? 1 : 0));
    }
    for (const auto& transfer : pending) ExpectOver(transfer);
    if (rank == 0) return;
    EXPECT_THAT(values, testing::ElementsAreArray(
                            std::vector<std::vector<int>>{{1}, {3}, {5}, {0}, {2}, {4}}));
  });
}

TEST_P(TransportMessagesTest, AReceiveFromAnyRankReportsTheSender) {
  Group(4).Run([&](Backend& backend, int rank) {
    if (rank != 0) {
      ExpectOver(Send(backend, Counting(rank, 1000), 0, 7));
      return;
    }
    std::vector<int> sources;
    for (int i = 0; i < 3; ++i) {
      std::vector<int> got(1000);
      auto transfer = Recv(backend, got, std::nullopt, 7);
      ExpectOver(transfer);
      EXPECT_EQ(got, Counting(transfer->source(), 1000));
      sources.push_back(transfer->source());
    }
    EXPECT_THAT(sources, testing::UnorderedElementsAre(1, 2, 3));
  });
}

TEST_P(TransportMessagesTest, LargeMessagesPassEachOtherBothWays) {
  Group(3).Run([&](Backend& backend, int rank) {
    auto mine = Counting(rank, kLarge / sizeof(int));
    std::vector<std::vector<int>> got(3, std::vector<int>(mine.size()));
    std::vector<Pending> pending;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank) pending.push_back(Send(backend, mine, peer));
    }
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      pending.push_back(Recv(backend, got[static_cast<size_t>(peer)], peer));
    }
    for (const auto& transfer : pending) ExpectOver(transfer);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(got[static_cast<size_t>(peer)], Counting(peer, mine.size()));
    }
  });
}

// Checks the error for a message of `sent` numbers to a receive of `received`.
// The messages around it must arrive.
void CheckUnequal(const BackendGroup& group, size_t sent, size_t received, bool sender_is_told) {
  const std::string text = "rank 0 sends " + std::to_string(sent) +
                           " x int32 with tag 5 to rank 1, which expects " +
                           std::to_string(received) + " x int32";
  group.Run([&](Backend& backend, int rank) {
    std::vector<int> values(rank == 0 ? sent : received, -1);
    auto transfer = rank == 0 ? Send(backend, values, 1, 5) : Recv(backend, values, 0, 5);
    auto result = transfer->Wait(seconds(60));
    if (rank == 0 && !sender_is_told) {
      EXPECT_TRUE(result) << result.error().message;
    } else {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
      EXPECT_THAT(result.error().message, HasSubstr(text));
      EXPECT_THAT(values, testing::Each(-1));
    }
    auto next = rank == 0 ? Counting(7, sent) : std::vector<int>(sent);
    ExpectOver(rank == 0 ? Send(backend, next, 1, 5) : Recv(backend, next, 0, 5));
    EXPECT_EQ(next, Counting(7, sent));
  });
}

TEST_P(TransportMessagesTest, AnotherSizeOfALongMessageIsAnErrorOnBothSides) {
  CheckUnequal(Group(2), 100'000, 80'000, true);
  CheckUnequal(Group(2), 80'000, 100'000, true);
  CheckUnequal(Group(2), 80'000, 8, true);
}

TEST_P(TransportMessagesTest, AnotherSizeOfAShortMessageIsAnErrorOfTheReceiver) {
  CheckUnequal(Group(2), 10, 8, false);
  CheckUnequal(Group(2), 8, 10, false);
  CheckUnequal(Group(2), 8, 80'000, false);
  CheckUnequal(Group(2), 0, 1, false);
}

TEST_P(TransportMessagesTest, AnotherDTypeIsAnErrorAsAnotherSizeIs) {
  for (size_t count : {4U, 40'000U}) {
    const bool sender_is_told = count > 4;  // a short message has been sent by then
    const std::string text = std::to_string(count) +
                             " x float32 with tag 0 to rank 1, which expects " +
                             std::to_string(count) + " x int32";
    Group(2).Run([&](Backend& backend, int rank) {
      std::vector<int> values(count);
      auto transfer = rank == 0
                          ? backend.StartSend(ConstBlockOf(values), 1, Tagged(0, DType::kFloat32))
                          : backend.StartRecv(BlockOf(values), 0, Tagged(0, DType::kInt32));
      ASSERT_TRUE(transfer);
      auto result = (*transfer)->Wait(seconds(60));
      if (rank == 0 && !sender_is_told) {
        EXPECT_TRUE(result) << result.error().message;
        return;
      }
      ASSERT_FALSE(result);
      EXPECT_THAT(result.error().message, HasSubstr("rank 0 sends " + text));
    });
  }
}

TEST_P(TransportMessagesTest, AWaitThatTimesOutBreaksNothing) {
  Turn ran_out;
  Group(2).Run([&](Backend& backend, int rank) {
    auto values = Counting(rank, 1000);
    if (rank == 0) {
      ran_out.Await();
      ExpectOver(Send(backend, values, 1));
      return;
    }
    auto transfer = Recv(backend, values, 0);
    auto result = transfer->Wait(milliseconds(20));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
    EXPECT_FALSE(transfer->Test());
    ran_out.Pass();
    ExpectOver(transfer);
    EXPECT_EQ(values, Counting(0, 1000));
  });
}

TEST_P(TransportMessagesTest, TestSeesTheEndWithoutWaiting) {
  Group(2).Run([&](Backend& backend, int rank) {
    auto values = Counting(rank, 5000);
    auto transfer = rank == 0 ? Send(backend, values, 1) : Recv(backend, values, 0);
    while (!transfer->Test()) std::this_thread::yield();
    ExpectOver(transfer);
    EXPECT_EQ(values, Counting(0, 5000));
  });
}

TEST_P(TransportMessagesTest, MessagesAndCollectivesPassEachOther) {
  Group(2).Run([&](Backend& backend, int rank) {
    auto values = Counting(rank, 100'000);
    auto transfer = rank == 0 ? Send(backend, values, 1) : Recv(backend, values, 0);
    for (uint64_t i = 1; i <= 20; ++i) {
      TestCall call({.kind = Operation::Kind::kBarrier, .number = i});
      EXPECT_TRUE(Barrier(backend, call.call));
    }
    ExpectOver(transfer);
    EXPECT_EQ(values, Counting(0, values.size()));
  });
}

TEST_P(TransportMessagesTest, ALeavingRankIsAnErrorOnlyForItsPeers) {
  Group(3).Run([&](Backend& backend, int rank) {
    if (rank == 2) return;
    auto values = Counting(rank, 1000);
    if (rank == 0) {
      std::vector<int> never(10);
      auto from_two = Recv(backend, never, 2);
      auto result = from_two->Wait(seconds(60));
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, ErrorCode::kPeerLost);
      EXPECT_THAT(result.error().message, HasSubstr("rank 2 has left the group"));
      ExpectOver(Send(backend, values, 1));
    } else {
      ExpectOver(Recv(backend, values, std::nullopt));
    }
  });
}

TEST_P(TransportMessagesTest, AbortEndsWaitsOnAllRanksWithTheReason) {
  Group(2).Run([&](Backend& backend, int rank) {
    std::vector<int> never(10);
    auto transfer = Recv(backend, never, 1 - rank);
    if (rank == 0) backend.Abort("tired of waiting");
    auto result = transfer->Wait(seconds(60));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("tired of waiting"));
  });
}

TEST_P(TransportMessagesTest, ACollectiveThatTimesOutCancelsTransfers) {
  Turn timed_out;
  Group(2).Run([&](Backend& backend, int rank) {
    if (rank == 1) return timed_out.Await();
    std::vector<int> never(10);
    auto pending = Recv(backend, never, 1);
    TestCall call({.kind = Operation::Kind::kBarrier, .number = 1}, milliseconds(50));
    auto barrier = Barrier(backend, call.call);
    auto later = Recv(backend, never, 1);
    timed_out.Pass();
    ASSERT_FALSE(barrier);
    EXPECT_EQ(barrier.error().code, ErrorCode::kTimeout);
    for (const auto* transfer : {&pending, &later}) {
      auto result = (*transfer)->Wait(seconds(60));
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, ErrorCode::kCancelled)
          << "kTimeout would mean that the transfer continues";
      EXPECT_THAT(result.error().message, HasSubstr("waiting for rank 1"));
    }
  });
}

}  // namespace
}  // namespace rankrun::comm::transport
