#include "comm/shm/messages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/shm/backend.h"
#include "tests/comm/async/message_ranks.h"
#include "tests/comm/backend_calls.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 3'000'001;  // many times the capacity of a channel

TEST(ShmMessagesTest, MessagesOfAllSizesArrive) {
  std::vector<size_t> sizes{0, 1, 31, 32, 33, 4095, 65536, 131071, 131072, 131073, 8u << 20};
  RunMessageRanks(2, [&](MessageRank& me) {
    for (size_t bytes : sizes) {
      if (me.rank() == 0) {
        EXPECT_TRUE(me.Send(Text(bytes, bytes), 1));
        EXPECT_TRUE(me.Recv(bytes, 1) == Text(bytes + 1, bytes)) << bytes;
      } else {
        EXPECT_TRUE(me.Recv(bytes, 0) == Text(bytes, bytes)) << bytes;
        EXPECT_TRUE(me.Send(Text(bytes + 1, bytes), 0));
      }
    }
  });
}

TEST(ShmMessagesTest, MessagesOfOneTagArriveInOrder) {
  RunMessageRanks(2, [](MessageRank& me) {
    for (uint64_t i = 0; i < 5000; ++i) {
      if (me.rank() == 0) {
        EXPECT_TRUE(me.Send(Text(i, i % 90), 1));
      }
      if (me.rank() == 1) {
        EXPECT_EQ(me.Recv(i % 90, 0), Text(i, i % 90));
      }
    }
  });
}

TEST(ShmMessagesTest, TagsAreReceivedInAnyOrder) {
  for (size_t bytes : {kSmall, kLarge}) {
    RunMessageRanks(2, [&](MessageRank& me) {
      if (me.rank() == 0) {
        for (uint64_t tag : {5u, 6u, 7u}) EXPECT_TRUE(me.Send(Text(tag, bytes), 1, tag));
      } else {
        for (uint64_t tag : {6u, 7u, 5u}) {
          EXPECT_TRUE(me.Recv(bytes, 0, tag) == Text(tag, bytes));
        }
      }
    });
  }
}

TEST(ShmMessagesTest, ASmallMessageIsOverAtOnceAndALargeOneWhenItIsTaken) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string small = Text(1, kSmall), large = Text(2, kLarge);
    if (me.rank() == 0) {
      auto first = me.StartSend(small, 1);
      EXPECT_TRUE(first->Test());
      auto second = me.StartSend(large, 1);
      EXPECT_FALSE(second->Test());
      me.Meet();
      EXPECT_TRUE(second->Wait(kMessageLimit));
    } else {
      me.Meet();
      EXPECT_TRUE(me.Recv(kSmall, 0) == small);
      EXPECT_TRUE(me.Recv(kLarge, 0) == large);
    }
  });
}

TEST(ShmMessagesTest, BothMaySendLargeMessagesFirst) {
  RunMessageRanks(2, [](MessageRank& me) {
    int other = 1 - me.rank();
    EXPECT_TRUE(me.Send(Text(uint64_t(me.rank()), kLarge), other));
    EXPECT_TRUE(me.Recv(kLarge, other) == Text(uint64_t(other), kLarge));
  });
}

TEST(ShmMessagesTest, ARingOfLargeMessagesGoesRound) {
  RunMessageRanks(4, [](MessageRank& me) {
    int next = (me.rank() + 1) % 4, previous = (me.rank() + 3) % 4;
    std::string in(kLarge, '?');
    std::string out = Text(uint64_t(me.rank()), kLarge);
    for (int i = 0; i < 3; ++i) {
      auto send = me.StartSend(out, next);
      auto receive = me.StartRecv(in, previous);
      EXPECT_TRUE(send->Wait(kMessageLimit));
      EXPECT_TRUE(receive->Wait(kMessageLimit));
      EXPECT_EQ(receive->source(), previous);
      EXPECT_TRUE(in == Text(uint64_t(previous), kLarge));
    }
  });
}

TEST(ShmMessagesTest, TwoSendersAreReceivedFromAnyoneOnceEach) {
  RunMessageRanks(3, [](MessageRank& me) {
    for (uint64_t i = 0; i < 200; ++i) {
      size_t bytes = i % 50 == 0 ? kLarge : kSmall;
      if (me.rank() != 0) {
        EXPECT_TRUE(me.Send(Text(uint64_t(me.rank()) + 10 * i, bytes), 0, 5));
        continue;
      }
      // The other message of this round may follow a message of the next round.
      int source = -1;
      std::string got = me.Recv(bytes, std::nullopt, 5, &source);
      ASSERT_TRUE(source == 1 || source == 2);
      EXPECT_TRUE(got == Text(uint64_t(source) + 10 * i, bytes));
      int other = 3 - source;
      EXPECT_TRUE(me.Recv(bytes, other, 5) == Text(uint64_t(other) + 10 * i, bytes));
    }
  });
}

TEST(ShmMessagesTest, TheReceiveThatWasPostedEarlierGetsTheMessage) {
  RunMessageRanks(2, [](MessageRank& me) {
    if (me.rank() == 1) {
      me.Meet();
      for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(me.Send(Text(i, kSmall), 0));
      return;
    }
    std::vector<std::string> data(4, std::string(kSmall, '?'));
    std::vector<std::unique_ptr<Transfer>> transfers;
    transfers.push_back(me.StartRecv(data[0], std::nullopt));
    transfers.push_back(me.StartRecv(data[1], 1));
    transfers.push_back(me.StartRecv(data[2], std::nullopt));
    transfers.push_back(me.StartRecv(data[3], 1));
    me.Meet();
    for (size_t i = transfers.size(); i-- > 0;) {
      EXPECT_TRUE(transfers[i]->Wait(kMessageLimit));
      EXPECT_EQ(transfers[i]->source(), 1);
      EXPECT_EQ(data[i], Text(i, kSmall));
    }
  });
}

TEST(ShmMessagesTest, AReceivePostedInTheMiddleOfAMessageGetsAllOfIt) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string large = Text(1, kLarge);
    if (me.rank() == 0) {
      auto send = me.StartSend(large, 1);
      me.Meet();  // reads part of the message
      EXPECT_TRUE(send->Wait(kMessageLimit));
    } else {
      for (int i = 0; i < 3; ++i) me.messages().Move();
      std::string got(kLarge, '?');
      auto receive = me.StartRecv(got, 0);
      me.Meet();
      EXPECT_TRUE(receive->Wait(kMessageLimit));
      EXPECT_TRUE(got == large);
    }
  });
}

TEST(ShmMessagesTest, ManyMessagesMayBeUnderWayAtOnce) {
  RunMessageRanks(3, [](MessageRank& me) {
    auto text = [](int from, int to, uint64_t tag) {
      return Text(tag * 16 + uint64_t(from * 4 + to), tag * 37 % 5000);
    };
    std::list<std::string> blocks;
    std::vector<std::pair<std::string*, std::string>> wanted;
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (uint64_t tag = 0; tag < 300; ++tag) {
      for (int other : {(me.rank() + 1) % 3, (me.rank() + 2) % 3}) {
        const std::string& out = blocks.emplace_back(text(me.rank(), other, tag));
        transfers.push_back(me.StartSend(out, other, tag));
        std::string& in = blocks.emplace_back(out.size(), '?');
        transfers.push_back(me.StartRecv(in, other, tag));
        wanted.emplace_back(&in, text(other, me.rank(), tag));
      }
    }
    for (auto& transfer : transfers) EXPECT_TRUE(transfer->Wait(kMessageLimit));
    for (const auto& [got, want] : wanted) EXPECT_EQ(*got, want);
  });
}

TEST(ShmMessagesTest, ABusyPollerSeesTheEndOfItsTransfers) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string large = Text(1, kLarge);
    std::string got(kLarge, '?');
    auto transfer = me.rank() == 0 ? me.StartSend(large, 1) : me.StartRecv(got, 0);
    while (!transfer->Test()) std::this_thread::yield();
    EXPECT_TRUE(transfer->Wait(milliseconds(0)));
    if (me.rank() == 1) {
      EXPECT_TRUE(got == large);
    }
  });
}

// The thread of a collective moves messages that another thread waits for.
TEST(ShmMessagesTest, AnotherThreadMayMoveAnAwaitedMessage) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::atomic<bool> over = false;
    std::jthread progress_thread([&] {
      while (!over.load()) {
        me.messages().Move();
        std::this_thread::yield();
      }
    });
    for (uint64_t i = 0; i < 300; ++i) {
      size_t bytes = i % 60 == 0 ? kLarge : kSmall;
      if (me.rank() == 0) {
        EXPECT_TRUE(me.Send(Text(i, bytes), 1));
      }
      if (me.rank() == 1) {
        EXPECT_TRUE(me.Recv(bytes, 0) == Text(i, bytes));
      }
    }
    over.store(true);
  });
}

TEST(ShmMessagesTest, ARankInACollectiveReceivesMessages) {
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(2, [&](int rank) {
    MemoryStore store(keys);
    auto backend = ShmBackend::Create({.global_ranks = {0, 1},
                                       .group_rank = rank,
                                       .store = store,
                                       .key_prefix = "group/",
                                       .network_interface = "",
                                       .host = "",
                                       .timeout = kMessageLimit});
    ASSERT_TRUE(backend) << backend.error().message;
    Operation barrier{.kind = Operation::Kind::kBarrier, .number = 1};
    Call call{.operation = barrier, .timeout = kMessageLimit};
    Envelope envelope{.tag = 0, .dtype = DType::kUInt8};
    std::string large = Text(1, kLarge);
    if (rank == 0) {
      auto send = (*backend)->StartSend(BlockOf(std::as_const(large)), 1, envelope);
      ASSERT_TRUE(send);
      EXPECT_TRUE((*send)->Wait(kMessageLimit));
      EXPECT_TRUE(Barrier(**backend, call));
    } else {
      std::string got(kLarge, '?');
      EXPECT_TRUE(Barrier(**backend, call));
      auto receive = (*backend)->StartRecv(BlockOf(got), 0, envelope);
      ASSERT_TRUE(receive);
      EXPECT_TRUE((*receive)->Wait(kMessageLimit));
      EXPECT_TRUE(got == large);
    }
  });
}

}  // namespace
}  // namespace rankrun::comm::shm
