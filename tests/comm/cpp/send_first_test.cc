// Two ranks that both send before they receive: docs/torch-distributed.md.

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

struct SendFirstTest : testing::TestWithParam<const char*> {
  // Returns what each rank has received, or its error.
  static std::vector<std::string> Exchanged(size_t bytes, std::chrono::milliseconds timeout) {
    return InWorld(2, GetParam(), [&](ProcessGroup& world) {
      const GlobalRank other{1 - world.global_rank()};
      const std::vector<uint8_t> mine(bytes, 1);
      std::vector<uint8_t> theirs(bytes);
      std::string error = ErrorOf([&] {
        world.Send(mine, other, 0, timeout);
        world.Recv(theirs, other, 0, timeout);
      });
      return theirs == mine ? "received" : error;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, SendFirstTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(SendFirstTest, MessagesUpTo64KiBPass) {
  EXPECT_THAT(Exchanged(64 << 10, std::chrono::seconds(60)), Each("received"));
}

// Two ranks of one host have shared memory on hierarchical, too, but messages go over tcp.
TEST_P(SendFirstTest, LongerOnesPassOnShmAndTimeOutElsewhere) {
  constexpr size_t kLong = size_t{16} << 20;
  if (std::string(GetParam()) == "shm") {
    EXPECT_THAT(Exchanged(kLong, std::chrono::seconds(60)), Each("received"));
  } else {
    EXPECT_THAT(Exchanged(kLong, std::chrono::milliseconds(200)),
                Each(HasSubstr("no matching Recv after ")));
  }
}

}  // namespace
}  // namespace rankrun::comm
