// Options of NCCL, of the world and of groups in it.

#include <gmock/gmock.h>

#include <rankrun/c/group.h>
#include <rankrun/subgroups.h>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Returns what happens when the GPUs of a group connect.
std::string TraceOf(ProcessGroup& group) {
  fake_trace_take();
  group.BarrierOn({.type = DeviceType::kCuda});
  return fake_trace_take();
}

TEST(GpuOptionsTest, AWorldHandsThemToNccl) {
  auto texts = OnRanks(2, [](int) {
    InitOptions options = WithGpus();
    options.nccl = {.high_priority_stream = true, .min_ctas = 2, .max_ctas = 8};
    std::string trace = TraceOf(Init(options));
    Destroy();
    return trace;
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("make a stream of priority -5\n"),
                                HasSubstr(" of 2 of world, min 2 CTAs, max 8 CTAs\n"))));
}

TEST(GpuOptionsTest, WithoutThemNcclChooses) {
  auto texts = OnGpus(2, [](ProcessGroup& world) { return TraceOf(world); });
  EXPECT_THAT(texts, Each(AllOf(Not(HasSubstr("priority")), HasSubstr(" of 2 of world\n"))));
}

TEST(GpuOptionsTest, AGroupHasItsOwnOrThoseOfTheWorld) {
  auto texts = OnRanks(2, [](int) {
    InitOptions options = WithGpus();
    options.nccl = {.max_ctas = 8};
    ProcessGroup& world = Init(options);
    std::string text = TraceOf(NewGroup({.description = "heirs"}));
    text += TraceOf(NewGroup({.description = "others", .nccl = NcclOptions{.max_ctas = 4}}));
    text += TraceOf(SplitGroup(world, {{0, 1}}, {.description = "a part"}));
    text += TraceOf(SplitGroup(world, {{0, 1}},
                               {.description = "another", .nccl = NcclOptions{.min_ctas = 1}}));
    text += NewGroup({.backend = "shm"}).backend();
    Destroy();
    return text;
  });
  EXPECT_THAT(
      texts, Each(AllOf(HasSubstr(" of heirs, max 8 CTAs\n"), HasSubstr(" of others, max 4 CTAs\n"),
                        HasSubstr(" of a part, max 8 CTAs\n"),
                        HasSubstr(" of another, min 1 CTAs, max 64 CTAs\n"), HasSubstr("\nshm"))));
}

TEST(GpuOptionsTest, AreEqualOnAllRanks) {
  auto texts = OnRanks(2, [](int rank) {
    InitOptions options = WithGpus();
    options.nccl.high_priority_stream = rank == 1;
    return ErrorOf([&] { Init(options); });
  });
  EXPECT_THAT(texts,
              Each(AllOf(HasSubstr("rank 0 wants backend cpu:shm,cuda:nccl, timeout"),
                         HasSubstr("rank 1 wants backend cpu:shm,cuda:nccl with a high-priority "
                                   "stream, timeout"))));
}

TEST(GpuOptionsTest, NumbersThatCannotBeAreRefusedOnAllRanks) {
  auto texts = OnRanks(2, [](int rank) {
    InitOptions options = WithGpus();
    if (rank == 1) options.nccl = {.min_ctas = 8, .max_ctas = 2};
    return ErrorOf([&] { Init(options); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("options of NCCL: min_ctas is 8: want at most max_ctas, 2")));
}

TEST(GpuOptionsTest, OfC) {
  auto texts = OnRanks(1, [](int) {
    rankrun_nccl_options nccl;
    nccl.size = sizeof nccl;
    EXPECT_EQ(rankrun_nccl_options_default(&nccl), RANKRUN_OK);
    nccl.max_ctas = 3;
    rankrun_init_options options;
    options.size = sizeof options;
    EXPECT_EQ(rankrun_init_options_default(&options), RANKRUN_OK);
    options.backend = "nccl";
    options.nccl = &nccl;
    if (rankrun_init(&options) != RANKRUN_OK) return std::string(rankrun_last_error());
    std::string trace = TraceOf(World());
    Destroy();
    return trace;
  });
  EXPECT_THAT(texts, Each(HasSubstr(" of 1 of world, max 3 CTAs\n")));
}

}  // namespace
}  // namespace rankrun::comm
