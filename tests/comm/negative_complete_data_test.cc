// Errors on backends that do not compare all calls before data moves. A rank
// whose data is already complete gets the error in its next call.

#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// Errors of a call and of the next one.
std::string ErrorsOfTwo(const std::function<void()>& act, ProcessGroup& world) {
  std::string text = ErrorOf(act);
  return text + ", then " + ErrorOf([&] { world.Barrier(); });
}

struct NegativeCompleteDataTest : testing::TestWithParam<const char*> {
  static bool is_tcp() { return GetParam() == std::string("tcp"); }
};

INSTANTIATE_TEST_SUITE_P(Backends, NegativeCompleteDataTest, testing::Values("tcp", "gloo"),
                         NameOfBackend);

// Rank 0 calls after rank 2 has received all its data, from rank 1.
TEST_P(NegativeCompleteDataTest, N09_ARankWithCompleteDataFailsInItsNextCall) {
  InSharedMemory<std::atomic<bool>> is_through;
  auto told = InWorld(3, GetParam(), [&](ProcessGroup& world) {
    int root = world.global_rank() == 0 ? 0 : 1;
    while (root == 0 && !*is_through) std::this_thread::yield();
    auto act = [&] {
      std::vector<float> data(10);
      world.Broadcast(data, GlobalRank{root});
      if (world.global_rank() == 2) *is_through = true;
    };
    return ErrorsOfTwo(act, world);
  });
  auto both = AllOf(HasSubstr("rank 0 called Broadcast #1 (10 x float32 from rank 0)"),
                    HasSubstr("called Broadcast #1 (10 x float32 from rank 1)"));
  auto at_once = AllOf(StartsWith("DistMismatchError: Broadcast #1"), both,
                       HasSubstr(", then DistBackendError: Barrier #2"));
  auto late = AllOf(StartsWith("no error, then DistMismatchError: Barrier #2"), both);
  EXPECT_THAT(told[2], late);
  for (size_t r : {0U, 1U}) {
    if (is_tcp()) {  // both send their data without waiting, perhaps after the error is found
      EXPECT_THAT(told[r], AnyOf(at_once, late));
    } else {
      EXPECT_THAT(told[r], at_once);
    }
  }
}

// Rank 2 expects no data from the others.
TEST_P(NegativeCompleteDataTest, N12_ARankWithCompleteDataFailsInItsNextCall) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    bool alone = world.global_rank() == 2;
    std::vector<size_t> wanted{alone ? 0U : 2U, alone ? 0U : 2U, alone ? 2U : 0U};
    std::vector<size_t> sent = wanted;
    if (world.global_rank() == 0) sent[1] = 3;  // rank 1 expects 2
    std::vector<float> input(std::accumulate(sent.begin(), sent.end(), 0U));
    std::vector<float> output(std::accumulate(wanted.begin(), wanted.end(), 0U));
    return ErrorsOfTwo([&] { world.AllToAllSingle(output, input, wanted, sent); }, world);
  });
  auto difference = HasSubstr("rank 0 sends 12 bytes to rank 1, which expects 8");
  auto at_once = AllOf(StartsWith("DistMismatchError: AllToAll #1"), difference,
                       HasSubstr(", then DistBackendError: Barrier #2"));
  auto late = AllOf(StartsWith("no error, then DistMismatchError: Barrier #2"), difference);
  EXPECT_THAT(told[1], at_once);
  // Rank 2, over tcp also rank 0, may have its data before rank 1 finds the difference.
  EXPECT_THAT(told[2], AnyOf(at_once, late));
  if (is_tcp()) {
    EXPECT_THAT(told[0], AnyOf(at_once, late));
  } else {
    EXPECT_THAT(told[0], at_once);
  }
}

}  // namespace
}  // namespace rankrun::comm
