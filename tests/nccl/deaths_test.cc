// Ranks that die while the others wait for a GPU, which NCCL alone does not notice.

#include <gmock/gmock.h>
#include <nccl.h>
#include <signal.h>

#include <rankrun/gpu.h>

#include "base/status/status_page.h"
#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gated_stream.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Two ranks, the second of which can be killed.
struct GpuDeathTest : testing::Test {
  // Runs rank 0, and `victim` as rank 1 in the world.
  void Start(bool with_agent, const std::function<std::string(ProcessGroup&)>& survivor,
             const std::function<void(ProcessGroup&)>& victim) {
    for (int r = 0; r < 2; ++r) {
      ranks_.push_back(std::make_unique<ChildProcess>([&, r] {
        SetPlace(r, 2, server_.port());
        if (with_agent) UsePage(pages_[r]);
        ProcessGroup& world = Init(WithGpus());
        if (r == 0) return survivor(world);
        victim(world);
        return std::string();
      }));
    }
  }

  ServerProcess server_;
  StatusPage pages_[2] = {*StatusPage::Create(), *StatusPage::Create()};
  InSharedMemory<std::atomic<bool>> is_waiting_;  // rank 0 is in its last call
  std::vector<std::unique_ptr<ChildProcess>> ranks_;

  static void Await(const std::atomic<bool>& flag) {
    auto deadline = MonotonicClock().Now() + std::chrono::minutes(1);
    while (!flag.load()) {
      ASSERT_LT(MonotonicClock().Now(), deadline);
      std::this_thread::yield();
    }
  }
};

std::string Summed(ProcessGroup& world, std::atomic<bool>& is_waiting) {
  OnGpu<int32_t> values({1});
  world.AllReduce(values);
  values.Read();
  Work work = world.AllReduce(values, ReduceOp::kSum, kAsync);
  is_waiting.store(true);
  std::string end = EndOf(work);
  return end + (world.state() == GroupState::kBroken ? "" : "; not broken");
}

// Makes the first of the two calls, and then waits for its end.
void MakeOneCall(ProcessGroup& world) {
  OnGpu<int32_t> values({1});
  world.AllReduce(values);
  for (;;) pause();
}

// Makes the second call, too, behind a kernel that never ends.
void MakeACallThatNeverRuns(ProcessGroup& world, std::atomic<bool>& has_called) {
  OnGpu<int32_t> values({1});
  world.AllReduce(values);
  values.Read();
  GatedStream stuck;
  StreamScope scope(stuck.get());
  world.AllReduce(values);
  has_called.store(true);
  for (;;) pause();
}

TEST_F(GpuDeathTest, BeforeItsCallIsNamedWithoutAnAgent) {
  Start(
      false, [&](ProcessGroup& world) { return Summed(world, *is_waiting_); }, MakeOneCall);
  Await(*is_waiting_);
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(), AllOf(StartsWith("DistNetworkError"), HasSubstr("rank 1"),
                                       testing::Not(HasSubstr("not broken"))));
}

// The backend waits half a second for the rank's name.
struct GpuDeathTimingTest : GpuDeathTest {};

// As between hosts: NCCL loses the connection, and does not say to which rank.
TEST_F(GpuDeathTimingTest, ThatNcclNoticesFirstIsNamedWithoutAnAgent) {
  auto lose = [&](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    world.AllReduce(values);
    values.Read();
    fake_fail_next("ncclCommGetAsyncError", ncclRemoteError);
    Work work = world.AllReduce(values, ReduceOp::kSum, kAsync);
    is_waiting_->store(true);
    return EndOf(work);
  };
  Start(false, lose, [&](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    world.AllReduce(values);
    Await(*is_waiting_);
    raise(SIGKILL);
  });
  EXPECT_THAT(ranks_[0]->Text(), AllOf(StartsWith("DistNetworkError"), HasSubstr("rank 1")));
}

TEST_F(GpuDeathTest, InTheMiddleOfTheCallIsNamedByTheAgent) {
  InSharedMemory<std::atomic<bool>> has_called;
  Start(
      true, [&](ProcessGroup& world) { return Summed(world, *is_waiting_); },
      [&](ProcessGroup& world) { MakeACallThatNeverRuns(world, *has_called); });
  Await(*is_waiting_);
  Await(*has_called);
  pages_[0].PublishPeerDeath("rank 1 was killed by SIGKILL");
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(),
              AllOf(HasSubstr("rank 1 was killed by SIGKILL"), testing::Not(HasSubstr("SLOW")),
                    testing::Not(HasSubstr("not broken"))));
}

// NCCL's abort waits for kernels that are before its own.
TEST_F(GpuDeathTest, IsNotHiddenByAKernelThatNeverEnds) {
  Start(
      true,
      [&](ProcessGroup& world) {
        OnGpu<int32_t> values({1});
        world.AllReduce(values);
        values.Read();
        GatedStream stuck;
        StreamScope scope(stuck.get());
        Work work = world.AllReduce(values, ReduceOp::kSum, kAsync);
        is_waiting_->store(true);
        std::string end = EndOf(work);
        stuck.Open();
        return end;
      },
      MakeOneCall);
  Await(*is_waiting_);
  pages_[0].PublishPeerDeath("rank 1 was killed by SIGKILL");
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(),
              AllOf(HasSubstr("rank 1 was killed by SIGKILL"), testing::Not(HasSubstr("SLOW"))));
}

TEST_F(GpuDeathTest, BeforeItsMessageIsNamedWithoutAnAgent) {
  Start(
      false,
      [&](ProcessGroup& world) {
        OnGpu<int32_t> value({1});
        world.Recv(value, GlobalRank{1});
        value.Read();
        Work work = world.IRecv(value, GlobalRank{1});
        is_waiting_->store(true);
        return EndOf(work);
      },
      [](ProcessGroup& world) {
        OnGpu<int32_t> value({2});
        world.Send(value, GlobalRank{0});
        for (;;) pause();
      });
  Await(*is_waiting_);
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(), AllOf(StartsWith("DistNetworkError"), HasSubstr("rank 1"),
                                       HasSubstr("Recv (1 x int32 on cuda from rank 1, tag 0)")));
}

TEST_F(GpuDeathTest, WhileAPairConnectsIsNamedByTheAgent) {
  Start(
      true,
      [&](ProcessGroup& world) {
        OnGpu<int32_t> value({1});
        is_waiting_->store(true);
        return ErrorOf([&] { world.Send(value, GlobalRank{1}); });
      },
      [](ProcessGroup&) {
        for (;;) pause();
      });
  Await(*is_waiting_);
  pages_[0].PublishPeerDeath("rank 1 was killed by SIGKILL");
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(),
              AllOf(StartsWith("DistNetworkError"), HasSubstr("rank 1 was killed by SIGKILL")));
}

TEST_F(GpuDeathTest, WhileTheGpusConnectIsNamed) {
  Start(
      false,
      [&](ProcessGroup& world) {
        is_waiting_->store(true);
        OnGpu<int32_t> values({1});
        return ErrorOf([&] { world.AllReduce(values); });
      },
      [](ProcessGroup&) {
        for (;;) pause();
      });
  Await(*is_waiting_);
  ranks_[1]->Kill();
  EXPECT_THAT(ranks_[0]->Text(), AllOf(StartsWith("DistNetworkError"), HasSubstr("rank 1")));
}

}  // namespace
}  // namespace rankrun::comm
