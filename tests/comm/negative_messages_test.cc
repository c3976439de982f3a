// Messages and objects that must fail: on both sides, and with the name of the
// peer. The numbers are those of the list in docs/comm.md.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/objects.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kShort{300};

struct NegativeMessagesTest : testing::TestWithParam<const char*> {
  // What rank 0 is told of its Send of `sent` numbers, and rank 1 of its Recv
  // of `received`; and whether they can go on.
  static std::vector<std::string> Unequal(std::size_t sent, std::size_t received) {
    return InWorld(2, GetParam(), [&](ProcessGroup& world) {
      const bool sends = world.global_rank() == 0;
      std::vector<int64_t> data(sends ? sent : received);
      const std::string text = ErrorOf([&] {
        if (sends) {
          world.Send(data, GlobalRank{1});
        } else {
          world.Recv(data, GlobalRank{0});
        }
      });
      world.Barrier();
      return text;
    });
  }

  // The receiver is told always; the sender, unless its message was so small
  // that it was on its way without waiting for anybody.
  static void ExpectTold(const std::vector<std::string>& told, std::size_t sent,
                         std::size_t received) {
    const auto names = [](std::size_t count) {
      return AnyOf(HasSubstr(std::to_string(count) + " x int64"),
                   HasSubstr(std::to_string(count * 8) + " bytes"),
                   HasSubstr("want " + std::to_string(count * 8)),
                   HasSubstr("wants " + std::to_string(count * 8)));
    };
    EXPECT_THAT(told[1], AllOf(StartsWith("DistError: Recv ("), HasSubstr("rank 0"), names(sent),
                               names(received)));
    if (sent < 1000 && told[0] == "no error") return;
    EXPECT_THAT(told[0], AllOf(StartsWith("DistError: Send ("), HasSubstr("rank 1"), names(sent),
                               names(received)));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, NegativeMessagesTest, testing::Values("shm", "gloo"),
                         NameOfBackend);

TEST_P(NegativeMessagesTest, N15_SendToItself) {
  const auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data{1};
    const std::string text = ErrorOf([&] { world.Send(data, GlobalRank{world.global_rank()}); });
    world.Barrier();
    return text;
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: Send of the world process group"),
                               HasSubstr("the destination is this rank: want another, or ISend"))));
}

TEST_P(NegativeMessagesTest, N16_ASendLongerThanTheRecv) {
  ExpectTold(Unequal(4, 2), 4, 2);
  ExpectTold(Unequal(1'000'000, 2), 1'000'000, 2);
  ExpectTold(Unequal(1'000'000, 900'000), 1'000'000, 900'000);
}

TEST_P(NegativeMessagesTest, N16_ASendShorterThanTheRecv) {
  ExpectTold(Unequal(2, 4), 2, 4);
  ExpectTold(Unequal(2, 1'000'000), 2, 1'000'000);
  ExpectTold(Unequal(900'000, 1'000'000), 900'000, 1'000'000);
}

TEST_P(NegativeMessagesTest, N17_ARecvThatNobodyMeets) {
  const auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.Recv(data, GlobalRank{2}, 7, kShort); });
    }
    NewGroup({});  // to end it together, through the store
    return text;
  });
  EXPECT_THAT(told[0], AllOf(StartsWith("DistTimeoutError: Recv (1 x int64 from rank 2)"),
                             HasSubstr("no matching Send after 300 ms")));
}

TEST_P(NegativeMessagesTest, N17_ASendThatNobodyMeets) {
  const auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1'000'000);  // too much to be put anywhere
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.Send(data, GlobalRank{2}, 7, kShort); });
    }
    NewGroup({});
    return text;
  });
  EXPECT_THAT(told[0], AllOf(StartsWith("DistTimeoutError: Send (1000000 x int64 to rank 2)"),
                             HasSubstr("no matching Recv after 300 ms")));
}

TEST_P(NegativeMessagesTest, N18_TwoRanksThatReceiveFromEachOther) {
  const auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    const int other = 1 - world.global_rank();
    return ErrorOf([&] { world.Recv(data, GlobalRank{other}, 0, kShort); });
  });
  // The first whose time is over ends the other's wait.
  EXPECT_THAT(told[0], HasSubstr(": Recv (1 x int64 from rank 1)"));
  EXPECT_THAT(told[1], HasSubstr(": Recv (1 x int64 from rank 0)"));
  EXPECT_THAT(told, Each(AllOf(StartsWith("Dist"), HasSubstr("no matching Send after 300 ms"))));
}

TEST_P(NegativeMessagesTest, N25_AnObjectThatIsTooLarge) {
  const auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    const bool wrong = world.global_rank() == 1;
    const Object object(wrong ? kMaxObjectBytes + 1 : 10);
    world.Barrier();  // to have so much takes its time
    const std::string text = ErrorOf([&] { AllGatherObject(world, object); });
    const std::string after = ErrorOf([&] { AllGatherObject(world, Object(10)); });
    return after == "no error" ? text : text + "; then " + after;
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: "),
                               HasSubstr("the object of rank 1 has 1073741825 bytes: want at most "
                                         "1073741824"))));
}

TEST_P(NegativeMessagesTest, N25_AnObjectThatIsTooLargeToBeSent) {
  const auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    const bool sends = world.global_rank() == 1;
    std::vector<Object> objects(1, Object(sends ? kMaxObjectBytes + 1 : 10));
    world.Barrier();
    return ErrorOf([&] {
      if (sends) {
        SendObjects(world, objects, GlobalRank{0});
      } else {
        RecvObjects(world, objects, GlobalRank{1});
      }
    });
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: "),
                               HasSubstr("the object of rank 1 has 1073741825 bytes: want at most "
                                         "1073741824"))));
}

// What is inside is nobody's business here: bytes that are no CBOR come whole.
TEST_P(NegativeMessagesTest, N25_BytesThatAreNoCbor) {
  const auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    const Object damaged{std::byte{0xff}, std::byte{0x1c}, std::byte{0x00}};
    std::vector<Object> objects{world.global_rank() == 0 ? damaged : Object()};
    BroadcastObjects(world, objects, GlobalRank{0});
    return std::string(objects[0] == damaged ? "whole" : "changed");
  });
  EXPECT_THAT(told, Each("whole"));
}

TEST_P(NegativeMessagesTest, N30_TwoSendersAndARecvFromAnyone) {
  const auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::string text;
    for (const int tag : {0, 1}) {
      const std::size_t count = tag == 0 ? 1 : 300'000;
      std::vector<int64_t> data(count, world.global_rank());
      if (world.global_rank() != 0) {
        world.Send(data, GlobalRank{0}, tag);
        continue;
      }
      std::vector<int> senders;
      for (int i = 0; i < 2; ++i) {
        senders.push_back(world.Recv(data, {}, tag));
        const bool whole = std::count(data.begin(), data.end(), senders.back()) ==
                           static_cast<std::ptrdiff_t>(count);
        if (!whole) text += "mixed ";
      }
      std::sort(senders.begin(), senders.end());
      if (senders != std::vector{1, 2}) text += "wrong senders ";
    }
    return text;
  });
  EXPECT_THAT(told, Each(""));
}

}  // namespace
}  // namespace rankrun::comm
