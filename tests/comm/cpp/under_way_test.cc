// Messages and collectives that are under way at the same time, and their ends.

#include <gmock/gmock.h>

#include <vector>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::HasSubstr;

class UnderWayTest : public testing::TestWithParam<const char*> {};

// Rank 1 calls the collective only after rank 0 has confirmed the message.
TEST_P(UnderWayTest, AMessageEndsWhileACollectiveWaits) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> sum(1000, 1.0F);
    std::vector<int> message{world.global_rank()}, answer{0};
    if (world.global_rank() == 0) {
      Work received = world.IRecv(message, GlobalRank{1});
      Work reduced = world.AllReduce(sum, ReduceOp::kSum, kAsync);
      received.Wait();
      world.Send(message, GlobalRank{1});
      reduced.Wait();
    } else {
      world.Send(message, GlobalRank{0});
      world.Recv(answer, GlobalRank{0});
      world.AllReduce(sum);
    }
    return std::to_string(message[0] + answer[0]) + " " + std::to_string(sum[999]);
  });
  EXPECT_THAT(told, testing::ElementsAre("1 2.000000", "2 2.000000"));
}

TEST_P(UnderWayTest, AMessageEndsWithACollectiveThatTimesOut) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> sum(1000);
    std::vector<int> message{0};
    Work received = world.IRecv(message, GlobalRank{1 - world.global_rank()});
    if (world.global_rank() == 0) {
      CallOptions options = kAsync;
      options.timeout = milliseconds(200);
      static_cast<void>(world.AllReduce(sum, ReduceOp::kSum, options));
    }
    return ErrorOf([&] { received.Wait(); }, seconds(20));
  });
  EXPECT_THAT(told, Each(HasSubstr("AllReduce #1")));
  EXPECT_THAT(told, Each(testing::Not(HasSubstr("SLOW"))));
}

// A rank that waits for one operation does not block other messages.
TEST_P(UnderWayTest, MessagesPassAReceiveWithoutASend) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    GlobalRank other{1 - world.global_rank()};
    std::vector<int> never{0}, ball{0};
    Work last = world.IRecv(never, other, 7);
    for (int i = 0; i < 200; ++i) {
      if (world.global_rank() == 0) world.Send(std::vector<int>{i}, other);
      world.Recv(ball, other);
      if (world.global_rank() == 1) world.Send(ball, other);
    }
    world.Send(ball, other, 7);
    last.Wait();
    return std::to_string(never[0]);
  });
  EXPECT_THAT(told, Each("199"));
}

INSTANTIATE_TEST_SUITE_P(Backends, UnderWayTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

}  // namespace
}  // namespace rankrun::comm
