// Messages and objects that must fail on both sides, with the name of the peer.
// The numbers are those of the list in docs/torch-distributed.md.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <rankrun/cbor.h>
#include <rankrun/distributed.h>
#include <rankrun/objects.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr milliseconds kShort{300};
constexpr milliseconds kLonger{1000};  // enough for a message to arrive
constexpr milliseconds kPatience{60'000};

struct NegativeMessagesTest : testing::TestWithParam<const char*> {
  // Returns the errors of rank 0's Send of `sent` numbers and of rank 1's Recv
  // of `received`. The group must stay usable.
  static std::vector<std::string> Unequal(size_t sent, size_t received) {
    return InWorld(2, GetParam(), [&](ProcessGroup& world) {
      bool sends = world.global_rank() == 0;
      std::vector<int64_t> data(sends ? sent : received);
      std::string text = ErrorOf([&] {
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

  // The receiver always gets the error. The sender does, too, unless its
  // message was so small that it was buffered.
  static void ExpectTold(const std::vector<std::string>& told, size_t sent, size_t received) {
    auto names = [](size_t count) {
      return AnyOf(HasSubstr(std::to_string(count) + " x int64"),
                   HasSubstr(std::to_string(count * 8) + " bytes"),
                   HasSubstr("want " + std::to_string(count * 8)),
                   HasSubstr("expects " + std::to_string(count * 8)));
    };
    EXPECT_THAT(told[1], AllOf(StartsWith("DistError: Recv ("), HasSubstr("rank 0"), names(sent),
                               names(received)));
    if (sent < 1000 && told[0] == "no error") return;
    EXPECT_THAT(told[0], AllOf(StartsWith("DistError: Send ("), HasSubstr("rank 1"), names(sent),
                               names(received)));
  }
};

// Returns a rank's errors when two objects are sent and one is expected, and
// for the correct call after it.
std::string AnotherNumberOfObjects(ProcessGroup& world, size_t bytes) {
  auto move = [&](std::vector<Object>& objects) {
    return ErrorOf(
        [&] {
          if (world.global_rank() == 0) {
            SendObjects(world, objects, GlobalRank{1}, 5);
          } else {
            RecvObjects(world, objects, GlobalRank{0}, 5);
          }
        },
        kPatience);
  };
  bool sends = world.global_rank() == 0;
  std::vector<Object> wrong(sends ? 2 : 1, Object(bytes, std::byte{1}));
  std::vector<Object> right(3, Object(sends ? bytes : 0, std::byte{2}));
  std::string first = move(wrong);
  std::string second = move(right);
  NewGroup({});  // neither rank leaves before the other has its error
  bool good = right == std::vector<Object>(3, Object(bytes, std::byte{2}));
  return first + "; then " + second + (good ? "" : ", but other objects");
}

INSTANTIATE_TEST_SUITE_P(Backends, NegativeMessagesTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(NegativeMessagesTest, N15_SendToItself) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data{1};
    std::string text = ErrorOf([&] { world.Send(data, GlobalRank{world.global_rank()}); });
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

TEST_P(NegativeMessagesTest, N17_ARecvWithoutASend) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.Recv(data, GlobalRank{2}, 7, kShort); });
    }
    NewGroup({});  // synchronizes the ranks through the store
    return text;
  });
  EXPECT_THAT(told[0], AllOf(StartsWith("DistTimeoutError: Recv (1 x int64 from rank 2, tag 7)"),
                             HasSubstr("no matching Send after 300 ms")));
}

TEST_P(NegativeMessagesTest, N17_ASendWithoutARecv) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1'000'000);  // too large to be buffered
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.Send(data, GlobalRank{2}, 7, kShort); });
    }
    NewGroup({});
    return text;
  });
  EXPECT_THAT(told[0],
              AllOf(StartsWith("DistTimeoutError: Send (1000000 x int64 to rank 2, tag 7)"),
                    HasSubstr("no matching Recv after 300 ms")));
}

// Returns the error of `receive` on rank 1 after rank 0 has sent it a tensor
// with tag 3.
std::string BesideAMessage(const std::string& backend,
                           const std::function<void(ProcessGroup& world)>& receive) {
  return InWorld(2, backend, [&](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    Work sent;
    if (world.global_rank() == 0) sent = world.ISend(data, GlobalRank{1}, 3);
    world.Barrier();
    std::string text;
    if (world.global_rank() == 1) text = ErrorOf([&] { receive(world); }, kPatience);
    NewGroup({});
    ErrorOf([&] { sent.Wait(); });
    return text;
  })[1];
}

TEST_P(NegativeMessagesTest, N17_ARecvWithAnotherTagThanTheSend) {
  std::vector<int64_t> data(1);
  std::string told = BesideAMessage(
      GetParam(), [&](ProcessGroup& world) { world.Recv(data, GlobalRank{0}, 4, kLonger); });
  EXPECT_THAT(told,
              AllOf(StartsWith("DistTimeoutError: Recv (1 x int64 from rank 0, tag 4)"),
                    HasSubstr("no matching Send after 1000 ms; rank 0 has sent tag 3, for which "
                              "nobody has asked")));
}

TEST_P(NegativeMessagesTest, RecvObjectsOfAPlainMessageNamesTheMessage) {
  std::vector<Object> objects(1);
  std::string told = BesideAMessage(GetParam(), [&](ProcessGroup& world) {
    RecvObjects(world, objects, GlobalRank{0}, 3, kLonger);
  });
  EXPECT_THAT(told,
              AllOf(StartsWith("DistTimeoutError: RecvObjects (objects from rank 0, tag 3)"),
                    HasSubstr("no matching SendObjects after 1000 ms; rank 0 has sent tag 3, for "
                              "which nobody has asked")));
}

TEST_P(NegativeMessagesTest, AnotherNumberOfObjectsIsReportedByTheReceiver) {
  for (size_t bytes : {0U, 10U, 3'000'000U}) {
    auto told = InWorld(2, GetParam(), [&](ProcessGroup& world) {
      return AnotherNumberOfObjects(world, bytes) + AnotherNumberOfObjects(world, bytes);
    });
    const std::string receiver =
        "DistError: RecvObjects of the world process group, rank 1 of 2: rank 0 sends 2 objects, "
        "rank 1 expects 1; then no error";
    EXPECT_EQ(told[1], receiver + receiver);
    const auto sender =
        AllOf(StartsWith("DistError: SendObjects ("),
              HasSubstr(" of the world process group, rank 0 of 2: the receiver asks for another "
                        "number, a uint64 for each, or has no memory for them: "),
              AnyOf(HasSubstr("it expects 8 bytes of uint64"), HasSubstr("expects 1 x uint64")),
              EndsWith("; then no error"));
    std::string none = "no error; then no error";
    if (bytes < 1000) {
      EXPECT_THAT(told[0], AnyOf(none + none, sender));
    } else {
      EXPECT_THAT(told[0], sender);
    }
  }
}

TEST_P(NegativeMessagesTest, AWrongNumberOfObjectsToScatterFailsOnAllRanks) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<Object> objects(2, Object(7));
    std::string text = ErrorOf([&] { ScatterObjects(world, objects, GlobalRank{1}); });
    objects.resize(3);
    std::string after = ErrorOf([&] { ScatterObjects(world, objects, GlobalRank{1}); });
    return after == "no error" ? text : text + "; then " + after;
  });
  for (size_t r : {0U, 1U, 2U}) {
    EXPECT_EQ(told[r], "DistError: ScatterObjects of the world process group, rank " +
                           std::to_string(r) + " of 3: rank 1 has 2 objects: want 3, one per rank");
  }
}

TEST_P(NegativeMessagesTest, N18_TwoRanksThatReceiveFromEachOther) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    int other = 1 - world.global_rank();
    return ErrorOf([&] { world.Recv(data, GlobalRank{other}, 0, kShort); });
  });
  // The first rank that times out ends the other's wait.
  EXPECT_THAT(told[0], HasSubstr(": Recv (1 x int64 from rank 1, tag 0)"));
  EXPECT_THAT(told[1], HasSubstr(": Recv (1 x int64 from rank 0, tag 0)"));
  EXPECT_THAT(told, Each(AllOf(StartsWith("Dist"), HasSubstr("no matching Send after 300 ms"))));
}

TEST_P(NegativeMessagesTest, N25_AnObjectThatIsTooLarge) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    bool wrong = world.global_rank() == 1;
    Object object(wrong ? kMaxObjectBytes + 1 : 10);
    world.Barrier();  // allocating that much takes time
    std::string text = ErrorOf([&] { AllGatherObject(world, object); });
    std::string after = ErrorOf([&] { AllGatherObject(world, Object(10)); });
    return after == "no error" ? text : text + "; then " + after;
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: "),
                               HasSubstr("the object of rank 1 has 1073741825 bytes: want at most "
                                         "1073741824"))));
}

TEST_P(NegativeMessagesTest, N25_AnObjectThatIsTooLargeToBeSent) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    bool sends = world.global_rank() == 1;
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

TEST_P(NegativeMessagesTest, AnInvalidRootOfObjectsFailsOnAllRanks) {
  for (std::string name : {"Broadcast", "Gather", "Scatter"}) {
    auto told = InWorld(2, GetParam(), [&](ProcessGroup& world) {
      GlobalRank root{world.global_rank() == 1 ? 5 : 0};
      std::vector<Object> objects(name == "Scatter" && root.value == 0 ? 2 : 1);
      return ErrorOf([&] {
        if (name == "Broadcast") BroadcastObjects(world, objects, root);
        if (name == "Gather") GatherObject(world, objects[0], root);
        if (name == "Scatter") ScatterObjects(world, objects, root);
        world.Barrier();  // fails on a rank that had sent its data before the refusal came
      });
    });
    EXPECT_THAT(told, Each(HasSubstr("global rank 5 is no member of the group")));
    EXPECT_THAT(told[0], AllOf(HasSubstr("rank 1 refused "), Not(HasSubstr("first to fail"))));
    EXPECT_THAT(told[1], StartsWith("DistError: "));
  }
}

TEST_P(NegativeMessagesTest, ObjectsOnARankThatIsNoMemberNameTheCall) {
  auto told = OnRanks(2, [&](int r) {
    setenv("RANKRUN_STRICT", "1", 1);
    Init({.backend = GetParam()});
    ProcessGroup& other = NewGroup({.ranks = {0}, .description = "other"});
    std::vector<Object> objects(1);
    if (r == 0) return std::string();
    return ErrorOf([&] { BroadcastObjects(other, objects, GlobalRank{0}); }) + "; " +
           ErrorOf([&] { SendObjects(other, objects, GlobalRank{0}); });
  });
  const std::string why =
      " of process group \"other\": does nothing here, as rank 1 is no member of it";
  EXPECT_EQ(told[1], "DistError: BroadcastObjects" + why + "; DistError: SendObjects" + why);
}

// The bytes arrive complete; FromCbor reports that they are not CBOR.
TEST_P(NegativeMessagesTest, N25_BytesThatAreNoCbor) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    Object damaged{std::byte{0xff}, std::byte{0x1c}, std::byte{0x00}};
    std::vector<Object> objects{world.global_rank() == 0 ? damaged : Object()};
    BroadcastObjects(world, objects, GlobalRank{0});
    if (objects[0] != damaged) return std::string("changed");
    return ErrorOf([&] { FromCbor<nlohmann::json>(objects[0], 0); });
  });
  EXPECT_THAT(told, Each(HasSubstr("object of rank 0 is no CBOR that can be read: at byte 1")));
}

// The caller would lose the Work of the first message, which writes to its
// tensor.
TEST_P(NegativeMessagesTest, ABatchWithAWrongMessageBeginsNone) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data{-1}, later{-1};
    GlobalRank other{1 - world.global_rank()};
    if (world.global_rank() == 0) {
      std::vector<int64_t> sent{7};
      world.Barrier();
      world.Send(sent, other);
      return std::string("no error");
    }
    P2POp batch[] = {{P2POp::Kind::kRecv, data, other}, {P2POp::Kind::kSend, data, other, -1}};
    std::string text = ErrorOf([&] { world.Batch(batch); });
    world.Barrier();
    world.Recv(later, other);
    return text + (data[0] == -1 && later[0] == 7 ? "" : ", but it took a message");
  });
  EXPECT_EQ(told[1],
            "DistError: Batch of the world process group, rank 1 of 2: message 1: tag is -1: want "
            "0 or more");
}

TEST_P(NegativeMessagesTest, ANegativeTagNamesTheCall) {
  auto told = InWorld(1, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    std::vector<Object> objects(1);
    return ErrorOf([&] { world.IRecv(data, GlobalRank{0}, -1); }) + "; " +
           ErrorOf([&] { SendObjects(world, objects, GlobalRank{0}, -2); }) + "; " +
           ErrorOf([&] { RecvObjects(world, objects, GlobalRank{0}, -3); });
  });
  std::string place = " of the world process group, rank 0 of 1: ";
  EXPECT_EQ(told[0], "DistError: IRecv" + place +
                         "tag is -1: want 0 or more; DistError: SendObjects" + place +
                         "tag is -2: want 0 or more; DistError: RecvObjects" + place +
                         "tag is -3: want 0 or more");
}

TEST_P(NegativeMessagesTest, ACollectiveThatTimesOutEndsPendingMessages) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<int64_t> data(1);
    std::string text;
    if (world.global_rank() == 0) {
      Work received = world.IRecv(data, GlobalRank{1});
      text = ErrorOf([&] { world.Barrier(kShort); }, kPatience);
      text += " | " + ErrorOf([&] { received.Wait(); }, kPatience / 2);
    }
    NewGroup({});  // synchronizes the ranks through the store
    return text;
  });
  EXPECT_THAT(told[0], AllOf(StartsWith("DistTimeoutError: Barrier #1"), HasSubstr(" | Dist")));
}

TEST_P(NegativeMessagesTest, N30_TwoSendersAndARecvFromAnyone) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::string text;
    for (int tag : {0, 1}) {
      size_t count = tag == 0 ? 1 : 300'000;
      std::vector<int64_t> data(count, world.global_rank());
      if (world.global_rank() != 0) {
        world.Send(data, GlobalRank{0}, tag);
        continue;
      }
      std::vector<int> senders;
      for (int i = 0; i < 2; ++i) {
        senders.push_back(world.Recv(data, {}, tag));
        bool whole = std::count(data.begin(), data.end(), senders.back()) ==
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
