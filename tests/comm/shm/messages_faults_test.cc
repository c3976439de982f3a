// Messages that do not match, never arrive, or whose peer has left or died.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "comm/shm/messages.h"
#include "store/clients/file_store.h"
#include "tests/comm/async/message_ranks.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 3'000'001;

void ExpectError(const Result<void>& result, ErrorCode code, const std::string& text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_THAT(result.error().message, HasSubstr(text));
}

TEST(ShmMessageFaultsTest, AMessageOfAnotherSizeIsAnErrorOfBothSides) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string large = Text(1, kLarge);
    std::string got(kLarge - 1, '?');
    if (me.rank() == 0) {
      me.Meet();  // the receive is posted
      auto ok = me.StartSend(large, 1, 5)->Wait(kMessageLimit);
      ExpectError(ok, ErrorCode::kInvalid,
                  "rank 11 refused 3000001 bytes of uint8 (tag 5): it expects 3000000");
      EXPECT_TRUE(me.Send("sound", 1));
    } else {
      auto receive = me.StartRecv(got, 0, 5);
      me.Meet();
      ExpectError(receive->Wait(kMessageLimit), ErrorCode::kInvalid,
                  "the message from rank 10 has 3000001 bytes of uint8 (tag 5): want 3000000");
      EXPECT_EQ(got, std::string(kLarge - 1, '?'));
      EXPECT_EQ(me.Recv(5, 0), "sound");
    }
  });
}

TEST(ShmMessageFaultsTest, ARefusedSenderDoesNotWaitForTheReceiversNextCall) {
  std::atomic<bool> sender_failed = false;
  RunMessageRanks(2, [&](MessageRank& me) {
    std::string large = Text(1, kLarge);
    if (me.rank() == 0) {
      ExpectError(me.StartSend(large, 1, 5)->Wait(kMessageLimit), ErrorCode::kInvalid,
                  "rank 11 refused 3000001 bytes of uint8");
      sender_failed.store(true);
      EXPECT_TRUE(me.Send("sound", 1));
    } else {
      std::string got(40, '?');
      ExpectError(me.StartRecv(got, 0, 5)->Wait(kMessageLimit), ErrorCode::kInvalid, "want 40");
      while (!sender_failed.load()) std::this_thread::yield();
      EXPECT_EQ(me.Recv(5, 0), "sound");
    }
  });
}

TEST(ShmMessageFaultsTest, AMessageOfAnotherTypeIsRefusedAfterItWasSent) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string small = Text(1, 80);
    std::string got(40, '?');
    if (me.rank() == 0) {
      EXPECT_TRUE(me.StartSend(small, 1, 5, DType::kFloat32)->Wait(kMessageLimit));
      EXPECT_TRUE(me.Send("sound", 1, 5));
      me.Meet();
    } else {
      me.Meet();
      ExpectError(me.StartRecv(got, std::nullopt, 5, DType::kInt64)->Wait(kMessageLimit),
                  ErrorCode::kInvalid,
                  "the message from rank 10 has 80 bytes of float32 (tag 5): want 40 bytes of "
                  "int64");
      EXPECT_EQ(me.Recv(5, 0, 5), "sound");
    }
  });
}

TEST(ShmMessageFaultsTest, AWaitThatTimesOutLeavesTheTransferGoing) {
  std::atomic<bool> timed_out = false;
  RunMessageRanks(2, [&](MessageRank& me) {
    std::string large = Text(1, kLarge);
    if (me.rank() == 0) {
      auto send = me.StartSend(large, 1, 5);
      ExpectError(send->Wait(milliseconds(20)), ErrorCode::kTimeout,
                  "rank 11 has not taken a message (tag 5), waited 0.020 s");
      EXPECT_FALSE(send->Test());
      timed_out.store(true);
      EXPECT_TRUE(send->Wait(kMessageLimit));
      EXPECT_TRUE(me.Send("late", 1, 6));
    } else {
      while (!timed_out.load()) std::this_thread::yield();
      std::string late(4, '?');
      auto receive = me.StartRecv(late, std::nullopt, 6);
      // Queued behind the large one, which cannot finish at once.
      ExpectError(receive->Wait(milliseconds(0)), ErrorCode::kTimeout,
                  "no rank has sent a message (tag 6)");
      EXPECT_TRUE(me.Recv(kLarge, 0, 5) == large);
      EXPECT_TRUE(receive->Wait(kMessageLimit));
      EXPECT_EQ(late, "late");
    }
  });
}

TEST(ShmMessageFaultsTest, AbortEndsAllTransfersAndTouchesNoBlock) {
  std::atomic<bool> aborted = false;
  RunMessageRanks(2, [&](MessageRank& me) {
    auto large = std::make_unique<std::string>(Text(1, kLarge));
    if (me.rank() == 1) {
      auto send = me.StartSend(*large, 0);
      while (!aborted.load()) std::this_thread::yield();
      for (int i = 0; i < 10; ++i) me.messages().Move();
      me.messages().Abort(Error{ErrorCode::kSystem, "that too"});
      return;
    }
    auto got = std::make_unique<std::string>(kLarge, '?');
    auto under_way = me.StartRecv(*got, 1);
    auto waiting = me.StartRecv(*got, 1);
    auto send = me.StartSend(*large, 1);
    EXPECT_FALSE(under_way->Test());
    std::jthread other(
        [&] { ExpectError(waiting->Wait(kMessageLimit), ErrorCode::kSystem, "enough"); });
    me.messages().Abort(Error{ErrorCode::kSystem, "enough"});
    large.reset();
    got.reset();
    EXPECT_TRUE(under_way->Test());
    ExpectError(under_way->Wait(kMessageLimit), ErrorCode::kSystem, "enough");
    ExpectError(send->Wait(kMessageLimit), ErrorCode::kSystem, "enough");
    me.messages().Move();
    aborted.store(true);
    Envelope envelope{.tag = 0, .dtype = DType::kUInt8};
    auto started = me.messages().StartRecv({nullptr, 0}, 1, envelope);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().message, "enough");
  });
}

TEST(ShmMessageFaultsTest, MessagesSentBeforeLeavingAreReceived) {
  std::atomic<bool> left = false;
  RunMessageRanks(3, [&](MessageRank& me) {
    if (me.rank() == 1) {
      EXPECT_TRUE(me.Send("farewell", 0));
      me.Leave();
      left.store(true);
      return;
    }
    while (!left.load()) std::this_thread::yield();
    if (me.rank() == 2) {
      EXPECT_TRUE(me.Send("still here", 0, 3));
      return;
    }
    std::string got(1, '?');
    // Other ranks may still send it.
    EXPECT_EQ(me.Recv(10, std::nullopt, 3), "still here");
    EXPECT_EQ(me.Recv(8, 1), "farewell");
    std::string large = Text(1, kLarge);
    ExpectError(me.StartRecv(got, 1)->Wait(kMessageLimit), ErrorCode::kPeerLost,
                "rank 11 has left the group");
    ExpectError(me.StartSend(large, 1)->Wait(kMessageLimit), ErrorCode::kPeerLost,
                "rank 11 has left the group");
    ExpectError(me.StartRecv(got, std::nullopt)->Wait(kMessageLimit), ErrorCode::kPeerLost,
                "has left");
  });
}

// Time until a test of a started transfer checks whether its peer has ended.
void AwaitTheNextLook() {
  TimePoint late = MonotonicClock().Now() + milliseconds(10);
  while (MonotonicClock().Now() < late) std::this_thread::yield();
}

// The room of this message is free when it is read, before the others are.
const std::string kChunk(16 * 1024, 'c');

// Number of small messages that fit into a channel behind it.
size_t SmallMessages(const MessageLayout& layout) {
  return (layout.RingBytes() - kChunk.size() - kGrain) / (2 * kGrain);
}

// Fills the channel to rank 0. Sends one more message while rank 0 reads the
// others, so that it may not read all in one pass.
void SendWhileTheOthersAreRead(MessageRank& me, const MessageLayout& layout,
                               std::atomic<bool>& filled) {
  EXPECT_TRUE(me.Send(kChunk, 0, 2));
  for (size_t i = 0; i < SmallMessages(layout); ++i) EXPECT_TRUE(me.StartSend("x", 0)->Test());
  std::byte* state = me.segment().messages() + layout.StateAt(1, 0);
  filled.store(true);
  while (reinterpret_cast<ChannelState*>(state)->read.load() == 0) std::this_thread::yield();
  EXPECT_TRUE(me.Send("last", 0, 1));
}

// The check that finds that the sender has left also finds the last message.
// Then no rank gets an error.
TEST(ShmMessageFaultsTest, AChannelFullOfSmallMessagesIsReceivedAfterItsSenderLeft) {
  MessageLayout layout{.world_size = 3};
  std::atomic<bool> filled = false, received = false, tested = false;
  RunMessageRanks(3, [&](MessageRank& me) {
    std::string large = Text(1, kLarge);
    if (me.rank() == 1) {
      SendWhileTheOthersAreRead(me, layout, filled);
      me.Leave();
      return;
    }
    if (me.rank() == 2) {
      auto send = me.StartSend(large, 0);
      while (!received.load()) std::this_thread::yield();
      AwaitTheNextLook();
      EXPECT_FALSE(send->Test());
      tested.store(true);
      EXPECT_TRUE(send->Wait(kMessageLimit));
      return;
    }
    std::string last(4, '?');
    auto receive = me.StartRecv(last, 1, 1);
    while (!filled.load()) std::this_thread::yield();
    AwaitTheNextLook();
    EXPECT_TRUE(receive->Wait(kMessageLimit));
    EXPECT_EQ(last, "last");
    received.store(true);
    while (!tested.load()) std::this_thread::yield();
    EXPECT_EQ(me.Recv(kChunk.size(), 1, 2), kChunk);
    for (size_t i = 0; i < SmallMessages(layout); ++i) ASSERT_EQ(me.Recv(1, 1), "x");
    EXPECT_TRUE(me.Recv(kLarge, 2) == large);
  });
}

TEST(ShmMessageFaultsTest, AnAbortAfterATimeOutEndsMessages) {
  std::atomic<bool> over = false;
  RunShmRanks(2, [&](ShmRank& me) {
    if (me.rank() == 1) {
      while (!over.load()) std::this_thread::yield();
      return;
    }
    std::string got(1, '?');
    auto receive = me.backend().StartRecv(BlockOf(got), 1, {.tag = 0, .dtype = DType::kUInt8});
    EXPECT_TRUE(receive);
    me.set_timeout(milliseconds(20));
    ExpectError(me.Barrier(), ErrorCode::kTimeout, "rank 1 has not called Barrier #1");
    me.backend().Abort("rank 0 gives up");
    // kTimeout would mean that the transfer continues.
    ExpectError((*receive)->Wait(milliseconds(0)), ErrorCode::kCancelled,
                "rank 1 has not called Barrier #1");
    over.store(true);
  });
}

TEST(ShmMessageFaultsTest, AnErrorOfTheGroupEndsMessages) {
  RunMessageRanks(2, [](MessageRank& me) {
    std::string got(1, '?');
    if (me.rank() == 0) me.segment().errors().Publish({ErrorCode::kTimeout, "rank 11 is missing"});
    if (me.rank() == 0) return;
    auto receive = me.StartRecv(got, std::nullopt);
    while (!receive->Test()) std::this_thread::yield();
    ExpectError(receive->Wait(milliseconds(0)), ErrorCode::kCancelled, "rank 11 is missing");
  });
}

// Runs ranks in separate processes. Returns the text of each.
std::vector<std::string> RunMessageProcesses(int ranks,
                                             const std::function<std::string(MessageRank&)>& body) {
  char path[] = "/tmp/shm-messages-XXXXXX";
  close(mkstemp(path));
  unlink(path);
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(std::make_unique<ChildProcess>([&] {
      auto store = store::FileStore::Open(path, "run", {});
      if (!store) return store.error().message;
      MessageRank me(**store, rank, ranks);
      return body(me);
    }));
  }
  std::vector<std::string> texts;
  for (auto& process : processes) texts.push_back(process->Text());
  unlink(path);
  return texts;
}

TEST(ShmMessageFaultsTest, ProcessesSendToEachOther) {
  auto texts = RunMessageProcesses(4, [](MessageRank& me) -> std::string {
    for (uint64_t round = 0; round < 50; ++round) {
      int next = (me.rank() + 1) % 4, previous = (me.rank() + 3) % 4;
      size_t bytes = round % 10 == 0 ? kLarge : kSmall;
      if (!me.Send(Text(round * 4 + uint64_t(me.rank()), bytes), next)) return "not sent";
      if (me.Recv(bytes, previous) != Text(round * 4 + uint64_t(previous), bytes)) return "differs";
    }
    return "fine";
  });
  EXPECT_THAT(texts, testing::Each("fine"));
}

TEST(ShmMessageFaultsTest, MessagesOfADeadRankAreReceivedAndTheRestIsLost) {
  auto texts = RunMessageProcesses(3, [](MessageRank& me) -> std::string {
    std::string large = Text(1, kLarge);
    if (me.rank() == 1) {
      EXPECT_TRUE(me.Send("last words", 0));
      auto half_sent = me.StartSend(large, 0, 7);
      _exit(0);
    }
    if (me.rank() == 2) return me.Recv(1, 1, 3);
    std::string got(1, '?');
    std::string lost = me.Recv(1, 1, 3);
    std::string from_anyone = me.Recv(1, std::nullopt, 3);
    std::string half = me.Recv(kLarge, 1, 7);
    auto send = me.StartSend(large, 1)->Wait(kMessageLimit);
    return me.Recv(10, 1) + "; " + lost + "; " + from_anyone + "; " + half + "; " +
           (send ? "sent" : send.error().message);
  });
  std::string lost = R"(rank 11 \(pid [0-9]+\) died)";
  EXPECT_THAT(texts[0], testing::MatchesRegex("last words; error: " + lost + "; error: " + lost +
                                              "; error: " + lost + "; " + lost));
  EXPECT_THAT(texts[2], testing::MatchesRegex("error: " + lost));
}

TEST(ShmMessageFaultsTest, ADeathEndsAWaitWithinMilliseconds) {
  auto die = [](MessageRank& me) -> std::string {
    me.Meet();
    if (me.rank() == 1) {
      TimePoint now = MonotonicClock().Now();
      auto ticks = now.time_since_epoch().count();
      EXPECT_TRUE(me.Send({reinterpret_cast<const char*>(&ticks), sizeof ticks}, 0));
      _exit(0);
    }
    std::string death = me.Recv(sizeof(TimePoint::rep), 1);
    std::string lost = me.Recv(1, 1);
    auto now = MonotonicClock().Now().time_since_epoch().count();
    TimePoint::rep ticks = 0;
    std::memcpy(&ticks, death.data(), sizeof ticks);
    bool quick = TimePoint::duration(now - ticks) < milliseconds(500);
    return std::string(quick ? "quick " : "slow ") + (lost.ends_with("died") ? "lost" : lost);
  };
  std::vector<std::string> told;  // of several attempts, because the machine may be loaded
  for (int i = 0; i < 5; ++i) told.push_back(RunMessageProcesses(2, die)[0]);
  EXPECT_THAT(told, testing::Each(testing::EndsWith(" lost")));
  EXPECT_THAT(told, testing::Contains("quick lost"));
}

}  // namespace
}  // namespace rankrun::comm::shm
