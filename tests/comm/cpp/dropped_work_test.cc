// A Work that the program drops before the end of its operation.

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/future.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Pairs = std::vector<int>;

// Returns what rank 0 logs while `begin` begins two all-reduces of `data`, which rank 1 makes
// later.
std::string LoggedBy(const std::function<void(ProcessGroup& world, Pairs& data)>& begin) {
  auto texts = InWorld(2, "shm", [&](ProcessGroup& world) {
    Pairs data{1, 2};
    Pairs go{0};
    if (world.global_rank() == 1) {
      world.Recv(go, GlobalRank{0});
      for (int i = 0; i < 2; ++i) world.AllReduce(data);
      world.Barrier();
      return std::string();
    }
    testing::internal::CaptureStderr();
    begin(world, data);
    std::string logged = testing::internal::GetCapturedStderr();
    world.Send(go, GlobalRank{1});
    world.Barrier();
    return logged;
  });
  return texts[0];
}

TEST(DroppedWorkTest, IsToldOnce) {
  EXPECT_THAT(
      LoggedBy([](ProcessGroup& world, Pairs& data) {
        world.AllReduce(data, kAsync);
        world.AllReduce(data, kAsync);
      }),
      AllOf(HasSubstr("the program has dropped the Work of AllReduce #1 (2 x int32, sum) before "
                      "its end: want Wait"),
            Not(HasSubstr("AllReduce #2"))));
}

TEST(DroppedWorkTest, SeveralOperationsAreOne) {
  EXPECT_THAT(
      LoggedBy([](ProcessGroup& world, Pairs& data) {
        const std::vector<Work> works{world.AllReduce(data, kAsync), world.AllReduce(data, kAsync)};
        Coalesce(works);
      }),
      HasSubstr("the program has dropped the Work of several operations before its end"));
}

TEST(DroppedWorkTest, AWorkThatWasUsedIsNotTold) {
  const std::map<std::string, std::function<void(const Work& work)>> uses = {
      {"IsCompleted", [](const Work& work) { work.IsCompleted(); }},
      {"WaitFor", [](const Work& work) { work.WaitFor(std::chrono::milliseconds(1)); }},
      {"Then", [](const Work& work) { work.Then([] {}); }},
      {"FutureOf", [](const Work& work) { FutureOf(work); }},
      {"Coalesce", [](const Work& work) {
         Coalesce({&work, 1}).IsCompleted();
       }}};
  for (const auto& each : uses) {
    EXPECT_THAT(LoggedBy([&](ProcessGroup& world, Pairs& data) {
                  for (int i = 0; i < 2; ++i) each.second(world.AllReduce(data, kAsync));
                }),
                IsEmpty())
        << each.first;
  }
}

TEST(DroppedWorkTest, ACopyKeepsIt) {
  EXPECT_THAT(LoggedBy([](ProcessGroup& world, Pairs& data) {
                static std::vector<Work> kept;
                for (int i = 0; i < 2; ++i) {
                  const Work work = world.AllReduce(data, kAsync);
                  kept.push_back(work);
                }
              }),
              IsEmpty());
}

// Its error was not seen, although it is over.
TEST(DroppedWorkTest, AFailedOperationIsTold) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Pairs data(world.global_rank() == 0 ? 2 : 3);
    Work work = world.AllReduce(data, kAsync);
    while (world.state() == GroupState::kOk) std::this_thread::yield();
    testing::internal::CaptureStderr();
    work = Work();
    return testing::internal::GetCapturedStderr();
  });
  // The group fails a moment before the operation ends.
  EXPECT_THAT(texts, testing::Each(testing::ContainsRegex(
                         "AllReduce #1 .*has failed.*Work.*want Wait|Work of AllReduce #1 ")));
}

}  // namespace
}  // namespace rankrun::comm
