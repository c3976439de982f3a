// What must fail on Gloo, which does not compare all calls before data moves: who
// has had all that it wanted before hears of it in its next call.

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
using testing::HasSubstr;
using testing::StartsWith;

// The error of a call, and that of the next.
std::string ErrorsOfTwo(const std::function<void()>& act, ProcessGroup& world) {
  const std::string text = ErrorOf(act);
  return text + ", then " + ErrorOf([&] { world.Barrier(); });
}

// Rank 0 comes when rank 2 has got all that it wants, from rank 1.
TEST(NegativeGloo, N09_WhoHasItsDataIsToldInItsNextCall) {
  InSharedMemory<std::atomic<bool>> is_through;
  const auto told = InWorld(3, "gloo", [&](ProcessGroup& world) {
    const int root = world.global_rank() == 0 ? 0 : 1;
    while (root == 0 && !*is_through) std::this_thread::yield();
    const auto act = [&] {
      std::vector<float> data(10);
      world.Broadcast(data, GlobalRank{root});
      *is_through = true;
    };
    return ErrorsOfTwo(act, world);
  });
  const auto both = AllOf(HasSubstr("rank 0 called Broadcast #1 (10 x float32 from rank 0)"),
                          HasSubstr("rank 1 called Broadcast #1 (10 x float32 from rank 1)"));
  for (const std::size_t r : {0U, 1U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistMismatchError: Broadcast #1"), both,
                               HasSubstr(", then DistBackendError: Barrier #2")));
  }
  EXPECT_THAT(told[2], AllOf(StartsWith("no error, then DistMismatchError: Barrier #2"), both));
}

// Rank 2 wants nothing of the others.
TEST(NegativeGloo, N12_WhoHasItsDataIsToldInItsNextCall) {
  const auto told = InWorld(3, "gloo", [](ProcessGroup& world) {
    const bool alone = world.global_rank() == 2;
    const std::vector<std::size_t> wanted{alone ? 0U : 2U, alone ? 0U : 2U, alone ? 2U : 0U};
    std::vector<std::size_t> sent = wanted;
    if (world.global_rank() == 0) sent[1] = 3;  // rank 1 wants 2
    std::vector<float> input(std::accumulate(sent.begin(), sent.end(), 0U));
    std::vector<float> output(std::accumulate(wanted.begin(), wanted.end(), 0U));
    return ErrorsOfTwo([&] { world.AllToAllSingle(output, input, wanted, sent); }, world);
  });
  const auto difference = HasSubstr("rank 0 sends 12 bytes to rank 1, which expects 8");
  for (const std::size_t r : {0U, 1U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistMismatchError: AllToAll #1"), difference,
                               HasSubstr(", then DistBackendError: Barrier #2")));
  }
  EXPECT_THAT(told[2],
              AllOf(StartsWith("no error, then DistMismatchError: Barrier #2"), difference));
}

}  // namespace
}  // namespace rankrun::comm
