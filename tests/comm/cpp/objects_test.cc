// Calls with objects consist of two inner calls: effects on time-outs, memory,
// and a receiver that expects another number of objects.

#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/objects.h>

#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Lt;
using testing::StartsWith;

constexpr milliseconds kPatience{60'000};

// Returns the time in a text such as "no matching SendObjects after 1990 ms".
int MillisecondsIn(const std::string& text) {
  std::string before = "SendObjects after ";
  auto at = text.find(before);
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + before.size()));
}

TEST(ObjectsTest, TheSecondHalfHasTheTimeThatTheFirstHasLeft) {
  constexpr milliseconds kLimit{2000};
  auto told = OnRanks(1, [&](int) {
    StatusPage page = *StatusPage::Create();
    UsePage(page);
    ProcessGroup& world = Init({.timeout = kPatience, .backend = "shm"});
    std::string text;
    std::jthread receiver([&] {
      std::vector<Object> objects(1);
      text = ErrorOf([&] { RecvObjects(world, objects, GlobalRank{0}, 5, kLimit); }, kPatience);
    });
    test::WaitFor(
        [&] { return ReadActivity(page).what.find("objects with tag 5") != std::string::npos; });
    TimePoint entered = std::chrono::steady_clock::now();
    test::WaitFor([&] { return std::chrono::steady_clock::now() > entered + milliseconds(20); });
    std::vector<uint64_t> first_half{1, 16, 8};
    Unwrap(GroupOf(world).ISend(first_half, GlobalRank{0}, kObjectTags + 5, {})).Wait();
    receiver.join();
    return text;
  });
  EXPECT_THAT(MillisecondsIn(told[0]), AllOf(testing::Gt(0), Lt(1990))) << told[0];
}

constexpr size_t kMuch = 128 << 20;
const std::string kNone = "no memory for 134217728 bytes of objects";

// Limits the memory of this process, so that it can no longer allocate kMuch. An arena of the
// allocator for another thread would take all that is left.
void LimitMemory() {
  mallopt(M_ARENA_MAX, 1);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlim_t most = pages * static_cast<size_t>(getpagesize()) + kMuch / 2;
  rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) throw DistError("setrlimit");
}

struct ObjectsWithoutMemoryTest : testing::TestWithParam<const char*> {
  void SetUp() override {
#ifdef RANKRUN_SANITIZED
    GTEST_SKIP() << "sanitizers have reserved more than any limit";
#endif
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ObjectsWithoutMemoryTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

// Rank 1 lacks memory. The object of rank 0 is large, or rank 1's own.
void CallWithMuch(const std::string& name, ProcessGroup& world) {
  bool poor = world.global_rank() == 1;
  GlobalRank root{name == "Gather" || name == "Broadcast of its own" ? 1 : 0};
  bool has_much = name == "Broadcast of its own" ? poor : !poor;
  std::vector<Object> objects(2);
  if (has_much) objects[1].resize(kMuch);
  if (poor) LimitMemory();
  world.Barrier();  // allocating that much takes time
  if (name.starts_with("Broadcast")) BroadcastObjects(world, objects, root);
  if (name == "AllGather") AllGatherObject(world, objects[1]);
  if (name == "Gather") GatherObject(world, objects[1], root);
  if (name == "Scatter") ScatterObjects(world, std::span(objects).first(poor ? 0 : 2), root);
}

TEST_P(ObjectsWithoutMemoryTest, ALackOfMemoryReachesTheOtherRanks) {
  for (const std::string name :
       {"Broadcast", "Broadcast of its own", "AllGather", "Gather", "Scatter"}) {
    auto told = InWorld(2, GetParam(), [&](ProcessGroup& world) {
      return ErrorOf([&] { CallWithMuch(name, world); }, kPatience / 2);
    });
    std::string call = name.substr(0, name.find(' '));
    EXPECT_THAT(told[1], AllOf(StartsWith("DistBackendError: " + call),
                               HasSubstr(": " + call + " of the world"), HasSubstr(kNone)));
    EXPECT_THAT(told[0], AllOf(HasSubstr("rank 1 refused " + call), HasSubstr(kNone)));
  }
}

// Returns a rank's errors for a large object from rank 0 to 1, and for a small
// one after it.
std::string SendMuch(ProcessGroup& world, int poor) {
  bool sends = world.global_rank() == 0;
  std::string text;
  for (size_t bytes : {kMuch - sizeof(uint64_t), size_t{8}}) {
    std::vector<Object> objects(1, Object(sends ? bytes : 0));
    if (bytes > 8 && world.global_rank() == poor) LimitMemory();
    world.Barrier();
    text += ErrorOf(
        [&] {
          if (sends) {
            SendObjects(world, objects, GlobalRank{1});
          } else {
            RecvObjects(world, objects, GlobalRank{0});
          }
        },
        kPatience / 2);
    text += objects[0].size() == bytes || bytes > 8 ? "; " : " but another; ";
  }
  return text;
}

TEST_P(ObjectsWithoutMemoryTest, ALackAtTheSenderReachesTheReceiver) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) { return SendMuch(world, 0); });
  std::string place = "Objects of the world process group, rank ";
  EXPECT_EQ(told[0], "DistBackendError: Send" + place + "0 of 2: " + kNone + "; no error; ");
  EXPECT_EQ(told[1], "DistBackendError: Recv" + place +
                         "1 of 2: rank 0 has no memory to send its objects; no error; ");
}

TEST_P(ObjectsWithoutMemoryTest, ALackAtTheReceiverReachesTheSender) {
  if (GetParam() == std::string("shm")) {
    GTEST_SKIP() << "shm needs memory for an unexpected message before the receive is called";
  }
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) { return SendMuch(world, 1); });
  EXPECT_THAT(told[0], AllOf(StartsWith("DistError: SendObjects ("),
                             HasSubstr(", or has no memory for them: "), EndsWith("; no error; ")));
  EXPECT_EQ(told[1], "DistBackendError: RecvObjects of the world process group, rank 1 of 2: " +
                         kNone + "; no error; ");
}

}  // namespace
}  // namespace rankrun::comm
