// Order of the calls in streams.

#include <gmock/gmock.h>

#include <future>

#include <rankrun/stream.h>

#include "base/status/activity.h"
#include "tests/base/support.h"
#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::Each;

// Stream of a program, with a kernel that ends when the test wants it.
class GatedStream {
 public:
  GatedStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    auto wait = [](void* gate) { static_cast<std::promise<void>*>(gate)->get_future().wait(); };
    EXPECT_EQ(cudaLaunchHostFunc(stream_, wait, &gate_), cudaSuccess);
  }
  GatedStream(const GatedStream&) = delete;
  GatedStream& operator=(const GatedStream&) = delete;
  ~GatedStream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  void Open() { gate_.set_value(); }
  cudaStream_t get() const { return stream_; }
  // Returns whether the stream gets to its end within a moment.
  bool IsEmpty() const {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
    auto deadline = MonotonicClock().Now() + milliseconds(20);
    bool reached = false;
    while (!reached && MonotonicClock().Now() < deadline) {
      reached = cudaEventQuery(event) == cudaSuccess;
      std::this_thread::yield();
    }
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    return reached;
  }

 private:
  std::promise<void> gate_;
  cudaStream_t stream_ = nullptr;
};

bool GatedStreamIsEmpty() {
  GatedStream gated;
  bool is_empty = gated.IsEmpty();
  gated.Open();
  return is_empty;
}

TEST(GpuStreamsTest, ACallRunsAfterTheStreamAndReturnsAtOnce) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    GatedStream kernels;
    OnGpu<int32_t> value({1});
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
    test::WaitFor([&] { return ReadActivity(page).what == shown; });
    kernels.Open();
    test::WaitFor([&] { return ReadActivity(page).what.empty(); });
    Destroy();
    return std::string();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuStreamsTest, AnOpenStreamIsEmptySoon) {
  GatedStream open;
  open.Open();
  EXPECT_TRUE(open.IsEmpty());
  EXPECT_FALSE(GatedStreamIsEmpty());
}

TEST(GpuStreamsTest, WaitIsInTheOrderOfTheStream) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    GatedStream kernels, later;
    later.Open();
    OnGpu<int32_t> value({1});
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
    GatedStream kernels, later;
    later.Open();
    OnGpu<int32_t> one({1}), two({2});
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
    GatedStream kernels;
    OnGpu<int32_t> value({1});
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
    fake_trace_take();
    world.AllReduce(value);
    std::string trace = fake_trace_take();
    value.Read();
    return trace;
  });
  EXPECT_THAT(texts, Each("record an event in the default stream\n"
                          "a stream waits for an event\n"
                          "ncclAllReduce 1 x int32, sum\n"
                          "record an event in a stream\n"
                          "the default stream waits for an event\n"));
}

TEST(GpuStreamsTest, DestroyWaitsForWorkUnderWay) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init(WithGpus());
    GatedStream kernels;
    OnGpu<int32_t> value({1});
    StreamScope scope(kernels.get());
    Work work = world.AllReduce(value, ReduceOp::kSum, kAsync);
    std::thread opener([&] { kernels.Open(); });
    Destroy();
    opener.join();
    return std::string(work.IsSuccess() ? "" : "it had not ended, ") +
           std::to_string(value.Read(kernels.get())[0]);
  });
  EXPECT_THAT(texts, Each("2"));
}

}  // namespace
}  // namespace rankrun::comm
