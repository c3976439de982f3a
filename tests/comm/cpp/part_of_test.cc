// Calls of the program that consist of several operations: texts have the name of the call.

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/join.h>
#include <rankrun/objects.h>
#include <rankrun/rpc.h>
#include <rankrun/training/data_parallel.h>

#include "base/status/activity.h"
#include "tests/comm/cpp/toy_model.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::milliseconds kShort{50};

// Returns the error of rank 0's `call`, which rank 1 does not make, and what its page shows then.
std::string TextOf(const std::function<void(ProcessGroup& world)>& call) {
  InSharedMemory<std::atomic<bool>> has_failed;
  auto texts = OnRanks(2, [&](int rank) {
    StatusPage page = *StatusPage::Create();
    UsePage(page);
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(60), .backend = "tcp"});
    while (rank == 1 && !*has_failed) std::this_thread::yield();
    if (rank == 1) return std::string();
    std::string text = ErrorOf([&] { call(world); });
    *has_failed = true;
    return text + " | " + DescribeOperation(ReadGroups(page).at(0).last);
  });
  return texts[0];
}

TEST(PartOfTest, ObjectsHaveTheNameOfTheirCall) {
  const Object object(3);
  const std::map<std::string, std::function<void(ProcessGroup & world)>> calls = {
      {"AllGatherObject: AllGather #1 (1 x uint64)",
       [&](ProcessGroup& world) { AllGatherObject(world, object, kShort); }},
      {"GatherObject: AllGather #1 (1 x uint64)",
       [&](ProcessGroup& world) { GatherObject(world, object, GlobalRank{0}, kShort); }},
      {"BroadcastObjects: Broadcast #1 (1 x uint64 from rank 1)",
       [&](ProcessGroup& world) {
         std::vector<Object> objects(1);
         BroadcastObjects(world, objects, GlobalRank{1}, kShort);
       }},
      {"ScatterObjects: Broadcast #1 (2 x uint64 from rank 1)",
       [&](ProcessGroup& world) { ScatterObjects(world, {}, GlobalRank{1}, kShort); }}};
  for (const auto& [name, call] : calls) {
    const std::string text = TextOf(call);
    EXPECT_THAT(text, StartsWith("DistTimeoutError: " + name + " of the world process group"));
    EXPECT_THAT(text, HasSubstr(" | " + name));
  }
}

struct Idle : Joinable {
  explicit Idle(ProcessGroup& group) : world(group) {}
  std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments&) override {
    return std::make_unique<JoinHook>();
  }
  ProcessGroup& join_process_group() const override { return world; }

  ProcessGroup& world;
};

// Returns the error of rank 0's `call` after rank 1 has called Barrier instead.
std::string MismatchOf(const std::function<void(ProcessGroup& world)>& call) {
  return OnRanks(2, [&](int rank) {
    ProcessGroup& world = Init({.backend = "tcp"});
    return ErrorOf([&] {
      if (rank == 0) return call(world);
      world.Barrier();
    });
  })[0];
}

TEST(PartOfTest, HelpersOfTrainingHaveTheirName) {
  EXPECT_THAT(MismatchOf([](ProcessGroup& world) {
                Idle model(world);
                Join({&model}).Finish();
              }),
              AllOf(StartsWith("DistMismatchError: "), HasSubstr("Join: AllReduce #1")));
  EXPECT_THAT(MismatchOf([](ProcessGroup& world) {
                ToyModel model;
                DataParallel(world, model.parameters());
              }),
              AllOf(StartsWith("DistMismatchError: "), HasSubstr("DataParallel: ")));
}

TEST(PartOfTest, ShutdownOfRpcHasItsName) {
  InSharedMemory<std::atomic<bool>> has_failed;
  auto texts = OnRanks(2, [&](int rank) {
    rpc::Init("w" + std::to_string(rank));
    while (rank == 1 && !*has_failed) std::this_thread::yield();
    std::string text = ErrorOf([&] { rpc::Shutdown(rank == 0, kShort); });
    *has_failed = true;
    return text;
  });
  EXPECT_THAT(texts[0], StartsWith("DistTimeoutError: rpc::Shutdown: AllReduce #"));
}

}  // namespace
}  // namespace rankrun::comm
