// Every collective between GPUs, compared with the data that it should give.

#include <gmock/gmock.h>

#include <numeric>

#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::ElementsAre;

using Values = std::vector<int32_t>;

// Returns `count` values that differ between ranks and places.
Values Own(int rank, size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), 100 * rank);
  return values;
}

// Returns the elements of all ranks one after the other.
Values Joined(int ranks, const std::function<Values(int rank)>& of) {
  Values all;
  for (int r = 0; r < ranks; ++r) {
    Values one = of(r);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

Values Sum(int ranks, size_t count) {
  Values sum(count, 0);
  for (int r = 0; r < ranks; ++r) {
    Values one = Own(r, count);
    for (size_t i = 0; i < count; ++i) sum[i] += one[i];
  }
  return sum;
}

std::string Checked(const char* what, const Values& values, const Values& wanted) {
  return values == wanted ? "" : std::string(what) + " is " + testing::PrintToString(values) + "; ";
}

// Sizes of the ranks' parts.
using SizeOfPart = size_t (*)(int rank);
size_t Even(int) { return 3; }
size_t Uneven(int rank) { return static_cast<size_t>(rank * rank % 5); }

// Parts of one allocation, in the order of ranks, `gap` elements apart.
std::vector<Tensor> Parts(const OnGpu<int32_t>& memory, int ranks, SizeOfPart size, size_t gap) {
  std::vector<Tensor> parts;
  size_t begin = 0;
  for (int r = 0; r < ranks; ++r) {
    parts.push_back(memory.Part(begin, size(r)));
    begin += size(r) + gap;
  }
  return parts;
}

size_t Whole(int ranks, SizeOfPart size, size_t gap) {
  size_t whole = 0;
  for (int r = 0; r < ranks; ++r) whole += size(r) + gap;
  return whole;
}

// Returns the values of the parts, without the gaps.
Values Without(const Values& values, int ranks, SizeOfPart size, size_t gap) {
  Values parts;
  size_t begin = 0;
  for (int r = 0; r < ranks; ++r) {
    auto at = values.begin() + static_cast<std::ptrdiff_t>(begin);
    parts.insert(parts.end(), at, at + static_cast<std::ptrdiff_t>(size(r)));
    begin += size(r) + gap;
  }
  return parts;
}

std::string AllGathers(ProcessGroup& world, SizeOfPart size, size_t gap) {
  int ranks = world.world_size(), me = world.group_rank();
  OnGpu<int32_t> memory(Values(Whole(ranks, size, gap)));
  OnGpu<int32_t> input(Own(me, size(me)));
  world.AllGather(Parts(memory, ranks, size, gap), input);
  return Checked("AllGather", Without(memory.Read(), ranks, size, gap),
                 Joined(ranks, [&](int r) { return Own(r, size(r)); }));
}

std::string ReduceScatters(ProcessGroup& world, SizeOfPart size, size_t gap) {
  int ranks = world.world_size(), me = world.group_rank();
  size_t whole = Whole(ranks, size, gap), before = Whole(me, size, gap);
  OnGpu<int32_t> memory(Own(me, whole));
  OnGpu<int32_t> output(Values(size(me)));
  auto parts = Parts(memory, ranks, size, gap);
  world.ReduceScatter(output, std::vector<ConstTensor>(parts.begin(), parts.end()));
  Values sum = Sum(ranks, whole);
  auto at = sum.begin() + static_cast<std::ptrdiff_t>(before);
  return Checked("ReduceScatter", output.Read(),
                 Values(at, at + static_cast<std::ptrdiff_t>(size(me))));
}

std::string Gathers(ProcessGroup& world, int root) {
  int ranks = world.world_size(), me = world.group_rank();
  OnGpu<int32_t> memory(Values(Whole(ranks, Uneven, 0)));
  OnGpu<int32_t> input(Own(me, Uneven(me)));
  std::vector<Tensor> outputs;
  if (me == root) outputs = Parts(memory, ranks, Uneven, 0);
  world.Gather(outputs, input, GlobalRank{root});
  input.Read();  // it is in use until then
  if (me != root) return "";
  return Checked("Gather", memory.Read(), Joined(ranks, [](int r) { return Own(r, Uneven(r)); }));
}

std::string Scatters(ProcessGroup& world, int root) {
  int ranks = world.world_size(), me = world.group_rank();
  OnGpu<int32_t> memory(Joined(ranks, [](int r) { return Own(r, Uneven(r)); }));
  OnGpu<int32_t> output(Values(Uneven(me)));
  std::vector<ConstTensor> inputs;
  if (me == root) {
    auto parts = Parts(memory, ranks, Uneven, 0);
    inputs.assign(parts.begin(), parts.end());
  }
  world.Scatter(output, inputs, GlobalRank{root});
  return Checked("Scatter", output.Read(), Own(me, Uneven(me)));
}

// Rank r sends (r + s) % 3 values to rank s.
std::string AllToAlls(ProcessGroup& world) {
  int ranks = world.world_size(), me = world.group_rank();
  auto count = [](int from, int to) { return static_cast<size_t>((from + to) % 3); };
  std::vector<size_t> sent, wanted;
  for (int r = 0; r < ranks; ++r) {
    sent.push_back(count(me, r));
    wanted.push_back(count(r, me));
  }
  Values mine = Joined(ranks, [&](int r) { return Own(100 * me + r, count(me, r)); });
  Values theirs = Joined(ranks, [&](int r) { return Own(100 * r + me, count(r, me)); });
  OnGpu<int32_t> input(mine);
  OnGpu<int32_t> output{Values(theirs.size())};
  world.AllToAllSingle(output, input, wanted, sent);
  return Checked("AllToAllSingle", output.Read(), theirs);
}

std::string InPlaceOnes(ProcessGroup& world, int root) {
  int ranks = world.world_size(), me = world.group_rank();
  OnGpu<int32_t> all(Own(me, 5)), one(Own(me, 5)), copied(Own(me, 5)), none{Values()};
  world.AllReduce(all);
  world.Reduce(one, GlobalRank{root});
  world.Broadcast(copied, GlobalRank{root});
  world.AllReduce(none);
  return Checked("AllReduce", all.Read(), Sum(ranks, 5)) +
         Checked("Reduce", one.Read(), me == root ? Sum(ranks, 5) : Own(me, 5)) +
         Checked("Broadcast", copied.Read(), Own(root, 5));
}

std::string OnesOfOneTensor(ProcessGroup& world) {
  int ranks = world.world_size(), me = world.group_rank();
  auto all = static_cast<size_t>(ranks);
  OnGpu<int32_t> input(Own(me, 2)), output(Values(2 * all)), large(Own(me, 2 * all));
  OnGpu<int32_t> part(Values(2));
  world.AllGatherInto(output, input);
  world.ReduceScatterFrom(part, large);
  Values sum = Sum(ranks, 2 * all);
  auto at = sum.begin() + 2 * me;
  return Checked("AllGatherInto", output.Read(), Joined(ranks, [](int r) { return Own(r, 2); })) +
         Checked("ReduceScatterFrom", part.Read(), Values(at, at + 2));
}

struct GpuCollectivesTest : testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuCollectivesTest, testing::Range(1, 10));

TEST_P(GpuCollectivesTest, AllHaveTheRightData) {
  auto texts = OnGpus(GetParam(), [](ProcessGroup& world) {
    int last = world.world_size() - 1;
    std::string text = InPlaceOnes(world, last) + OnesOfOneTensor(world);
    for (size_t gap : {0U, 1U}) {
      text += AllGathers(world, Even, gap) + AllGathers(world, Uneven, gap);
      text += ReduceScatters(world, Even, gap) + ReduceScatters(world, Uneven, gap);
    }
    text += Gathers(world, last) + Scatters(world, last) + AllToAlls(world);
    world.Barrier();
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuCollectivesTest, ABarrierOnGpusWaitsForAllStreams) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value(Own(world.group_rank(), 1));
    Work sum = world.AllReduce(value, ReduceOp::kSum, kAsync);
    world.BarrierOn({.type = DeviceType::kCuda, .index = 0});
    return std::string(sum.IsSuccess() ? "" : "the call before it had not ended");
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuCollectivesTest, GroupsHaveCommunicatorsOfTheirOwn) {
  auto texts = OnGpus(3, [](ProcessGroup& world) {
    ProcessGroup& ends = NewGroup({.ranks = {2, 0}, .sort_ranks = false});
    if (!ends.is_member()) return std::string();
    OnGpu<int32_t> value(Own(world.global_rank(), 1));
    ends.Broadcast(value, GroupRank{0});
    return Checked("Broadcast", value.Read(), Own(2, 1));
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuCollectivesTest, CallsOnBothKindsOfMemoryMayAlternate) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    std::string text;
    for (int i = 0; i < 50; ++i) {
      OnGpu<int32_t> on_gpu(Own(world.group_rank(), 3));
      Values on_cpu = Own(world.group_rank(), 3);
      Work work = world.AllReduce(on_gpu, ReduceOp::kSum, kAsync);
      world.AllReduce(on_cpu);
      work.Wait();
      text += Checked("on a GPU", on_gpu.Read(), Sum(2, 3)) + Checked("on cpu", on_cpu, Sum(2, 3));
    }
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

// The ranks compare a call by a barrier with its root, which any rank of a host may be.
TEST(GpuCollectivesTest, AnyRankCanBeTheRootInAHierarchy) {
  auto texts = OnGpus(
      4,
      [](ProcessGroup& world) {
        std::string text;
        for (int root = 0; root < 4; ++root) {
          OnGpu<int32_t> values({world.global_rank()});
          world.Broadcast(values, GlobalRank{root});
          world.Reduce(values, GlobalRank{root});
          text += root == world.global_rank() ? testing::PrintToString(values.Read()) : "";
        }
        return text;
      },
      "hierarchical");
  EXPECT_THAT(texts, ElementsAre("{ 0 }", "{ 4 }", "{ 8 }", "{ 12 }"));
}

}  // namespace
}  // namespace rankrun::comm
