// Order of the calls in streams.

#include <gmock/gmock.h>

#include <rankrun/gpu.h>

#include "base/status/activity.h"
#include "base/status/flight_reader.h"
#include "tests/base/support.h"
#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gated_stream.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::Each;

TEST(GpuStreamsTest, ACallRunsAfterTheStreamAndReturnsAtOnce) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    ConnectGpus(world);
    GatedStream kernels;
    StreamScope scope(kernels.get());
    Work work = world.AllReduce(value, ReduceOp::kSum, kAsync);
    std::string text;
    if (work.WaitFor(milliseconds(20))) text += "it did not wait for the kernel; ";
    kernels.Open();
    if (!work.WaitFor(std::chrono::seconds(60))) text += "it did not end; ";
    if (!work.IsSuccess()) text += "it failed; ";
    return text + std::to_string(value.Read(kernels.get())[0]);
  });
  EXPECT_THAT(texts, Each("2"));
}

TEST(GpuStreamsTest, TheStatusPageShowsACallUntilTheGpuIsDone) {
  auto texts = OnRanks(2, [](int) {
    StatusPage page = *StatusPage::Create();
    UsePage(page);
    ProcessGroup& world = Init(WithGpus());
    GatedStream kernels;
    OnGpu<int32_t> value({1});
    StreamScope scope(kernels.get());
    world.AllReduce(value);
    const std::string shown = "in AllReduce #1 (1 x int32, sum) of world on cuda";
    std::string text;
    if (!test::WaitFor([&] { return ReadActivity(page).what == shown; })) text += "not shown; ";
    kernels.Open();
    if (!test::WaitFor([&] { return ReadActivity(page).what.empty(); })) text += "for too long";
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuStreamsTest, TheFlightRecorderHasACallOnce) {
  auto texts = OnRanks(2, [](int) {
    StatusPage page = *StatusPage::Create();
    UsePage(page);
    ProcessGroup& world = Init(WithGpus());
    GatedStream kernels;
    OnGpu<int32_t> value({1});
    StreamScope scope(kernels.get());
    world.AllReduce(value);
    const auto recorded = [&] {
      std::string text;
      for (const FlightHistory& history : ReadFlightHistories(page)) {
        for (const FlightOperation& operation : history.operations) {
          text += DescribeOperation(operation.what) + " of " + history.group;
          if (operation.state == FlightState::kUnderWay) text += " under way; ";
        }
      }
      return text;
    };
    std::string text = recorded();
    kernels.Open();
    const std::string ended = "AllReduce #1 (1 x int32, sum) of world";
    if (!test::WaitFor([&] { return recorded() == ended; })) text += "not ended: " + recorded();
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each("AllReduce #1 (1 x int32, sum) of world under way; "));
}

TEST(GpuStreamsTest, AStreamIsEmptyOnceItsGateIsOpen) {
  GatedStream gated;
  EXPECT_FALSE(gated.IsEmpty());
  gated.Open();
  EXPECT_TRUE(gated.IsEmpty(std::chrono::minutes(1)));
}

TEST(GpuStreamsTest, WaitIsInTheOrderOfTheStream) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    ConnectGpus(world);
    GatedStream kernels, later;
    later.Open();
    Work work;
    {
      StreamScope scope(kernels.get());
      work = world.AllReduce(value, ReduceOp::kSum, kAsync);
    }
    StreamScope scope(later.get());
    work.Wait();
    std::string text;
    if (later.IsEmpty()) text += "the stream did not wait; ";
    kernels.Open();
    return text + std::to_string(value.Read(later.get())[0]);
  });
  EXPECT_THAT(texts, Each("2"));
}

TEST(GpuStreamsTest, OneWorkForSeveralIsWaitedForInTheStream) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> one({1}), two({2});
    ConnectGpus(world);
    GatedStream kernels, later;
    later.Open();
    std::vector<Work> works;
    {
      StreamScope scope(kernels.get());
      works.push_back(world.AllReduce(one, ReduceOp::kSum, kAsync));
      works.push_back(world.AllReduce(two, ReduceOp::kSum, kAsync));
    }
    StreamScope scope(later.get());
    Work all = Coalesce(works);
    all.Wait();
    std::string text = later.IsEmpty() ? "the stream did not wait; " : "";
    kernels.Open();
    text += std::to_string(two.Read(later.get())[0]);
    return text + (all.WaitFor(std::chrono::seconds(60)) ? "" : ", without an end");
  });
  EXPECT_THAT(texts, Each("4"));
}

TEST(GpuStreamsTest, ABlockingCallBlocksTheStreamOnly) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    ConnectGpus(world);
    GatedStream kernels;
    StreamScope scope(kernels.get());
    world.AllReduce(value);
    std::string text;
    if (kernels.IsEmpty()) text += "the stream did not wait; ";
    kernels.Open();
    return text + std::to_string(value.Read(kernels.get())[0]);
  });
  EXPECT_THAT(texts, Each("2"));
}

TEST(GpuStreamsTest, CallsAreEnqueuedBetweenTheirEvents) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    world.AllReduce(value);  // connects
    value.Read();
    GatedStream kernels;  // so that the call is under way when it returns
    StreamScope scope(kernels.get());
    fake_trace_take();
    world.AllReduce(value);
    std::string trace = fake_trace_take();
    kernels.Open();
    value.Read(kernels.get());
    return trace;
  });
  EXPECT_THAT(texts, Each("record an event in a stream\n"
                          "a stream waits for an event\n"
                          "ncclAllReduce 1 x int32, sum\n"
                          "record an event in a stream\n"
                          "a stream waits for an event\n"));
}

TEST(GpuStreamsTest, ACapturedStreamIsRefused) {
  auto texts = OnGpus(1, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    fake_fail_next("cudaStreamIsCapturing", cudaErrorStreamCaptureUnsupported);
    return ErrorOf([&] { world.AllReduce(value); });
  });
  EXPECT_THAT(texts, Each(testing::HasSubstr("the stream is captured into a CUDA graph")));
}

TEST(GpuStreamsTest, DestroyWaitsForWorkUnderWay) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> value({1});
    ConnectGpus(world);
    GatedStream kernels;
    StreamScope scope(kernels.get());
    Work work = world.AllReduce(value, ReduceOp::kSum, kAsync);
    std::atomic<bool> is_destroyed = false;
    std::string text;
    std::thread opener([&] {
      if (kernels.IsEmpty() || is_destroyed.load()) text += "it did not wait, ";
      kernels.Open();
    });
    Destroy();
    is_destroyed.store(true);
    opener.join();
    return text + std::string(work.IsSuccess() ? "" : "it had not ended, ") +
           std::to_string(value.Read(kernels.get())[0]);
  });
  EXPECT_THAT(texts, Each("2"));
}

}  // namespace
}  // namespace rankrun::comm
