// How soon a collective fails that cannot succeed.

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

struct NegativeCallsTimingTest : testing::TestWithParam<const char*> {
  using Act = std::function<void(ProcessGroup& world)>;

  // Returns the error of each rank; it begins with "SLOW" if it came late. Gloo
  // compares a call only when it has taken 500 ms.
  static std::vector<std::string> Told(int world_size, const Act& act) {
    std::chrono::milliseconds limit(GetParam() == std::string("shm") ? 1000 : 2000);
    return InWorld(world_size, GetParam(),
                   [&](ProcessGroup& world) { return ErrorOf([&] { act(world); }, limit); });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, NegativeCallsTimingTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(NegativeCallsTimingTest, AnotherCountFailsWithinASecond) {
  auto told = Told(2, [](ProcessGroup& world) {
    std::vector<float> data(world.global_rank() == 0 ? 10 : 20);
    world.AllReduce(data);
  });
  EXPECT_THAT(told, Each(StartsWith("DistMismatchError: AllReduce #1")));
}

TEST_P(NegativeCallsTimingTest, AnotherOperationFailsWithinASecond) {
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> data(10);
    return world.global_rank() == 2 ? world.Barrier() : world.AllReduce(data);
  });
  EXPECT_THAT(told, Each(StartsWith("DistMismatchError: ")));
}

TEST_P(NegativeCallsTimingTest, ARefusedCallFailsWithinASecond) {
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> input(1);
    world.Gather({}, input, GlobalRank{1});
    world.Barrier();  // fails on a rank that had sent its data before the refusal came
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("Dist"), HasSubstr("outputs has 0 tensors"))));
}

}  // namespace
}  // namespace rankrun::comm
