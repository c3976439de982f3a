// Abort of a group whose calls wait for a GPU.

#include <gmock/gmock.h>

#include <atomic>

#include "tests/nccl/gated_stream.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Rank 1 makes no second call, and no message.
TEST(GpuAbortTest, EndsCallsAndMessagesOnAllRanks) {
  EXPECT_THAT(OnGpus(2,
                     [](ProcessGroup& world) {
                       ConnectGpus(world);
                       OnGpu<int32_t> values({1}), message({2});
                       const GlobalRank other{1 - world.global_rank()};
                       Work received = world.IRecv(message, other);
                       Work reduced;
                       if (world.global_rank() == 0) {
                         reduced = world.AllReduce(values, ReduceOp::kSum, kAsync);
                         Abort(world, "enough");
                       }
                       std::string text = EndOf(received);
                       if (world.global_rank() == 0) text += "; " + EndOf(reduced);
                       return text + "; " + ErrorOfWork([&] {
                                return world.AllReduce(values, ReduceOp::kSum, kAsync);
                              });
                     }),
              Each(AllOf(HasSubstr("rank 0 aborted the group: enough"), Not(HasSubstr("no end")),
                         Not(HasSubstr("no error")), Not(HasSubstr("SLOW")))));
}

}  // namespace
}  // namespace rankrun::comm
