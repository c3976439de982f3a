// Calls on memory of devices, by a fake of the device and of the backend by which
// the ranks compare calls.

#include <gmock/gmock.h>

#include <future>

#include <rankrun/diagnosis/operation_hooks.h>
#include <rankrun/gpu.h>

#include "base/log.h"
#include "comm/core/debug_level.h"
#include "tests/comm/group/fake_device_backend.h"
#include "tests/comm/group/group_fixture.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

struct GroupDevicesTest : GroupTest {
  explicit GroupDevicesTest(bool checks_all_calls = false) {
    auto store = std::make_unique<MemoryStore>(keys);
    std::vector<int> ranks{0, 1};
    auto barrier = std::make_unique<StoreBarrier>(*store, "g/barrier", 0, ranks);
    auto fake = std::make_unique<FakeBackend>();
    auto devices = std::make_unique<FakeDeviceBackend>(seen);
    cpu = fake.get();
    device = devices.get();
    group = std::make_unique<Group>(GroupIdentity{.global_rank = 0,
                                                  .global_ranks = ranks,
                                                  .group_rank = 0,
                                                  .timeout = seconds(60),
                                                  .key_prefix = "g",
                                                  .deaths = DeathWatch(page),
                                                  .checks_all_calls = checks_all_calls,
                                                  .slow_call = milliseconds(0)},
                                    std::move(store), std::move(barrier), std::move(fake),
                                    std::move(devices));
  }
  ~GroupDevicesTest() override {
    for (const auto& work : seen->works) work->done = true;  // for ~Group
  }

  Tensor OnDevice(int index = 0) {
    Tensor tensor(data);
    tensor.device = {.type = DeviceType::kCuda, .index = index};
    return tensor;
  }
  Result<Work> AllReduce(const CallOptions& options = kAsync) {
    return group->AllReduce(OnDevice(), ReduceOp::kSum, options);
  }
  FakeDeviceWork& work() {
    std::lock_guard lock(seen->mutex);
    return *seen->works.back();
  }
  // Error of a call, or that of its work.
  std::string ErrorOfAllReduce() {
    auto sum = AllReduce();
    return sum ? EndOf(*sum) : sum.error().message;
  }
  static std::string EndOf(const Work& work) {
    try {
      return work.WaitFor(seconds(60)) ? "" : "no end";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::shared_ptr<FakeDeviceBackend::Seen> seen = std::make_shared<FakeDeviceBackend::Seen>();
  FakeBackend* cpu = nullptr;
  FakeDeviceBackend* device = nullptr;
  std::unique_ptr<Group> group;
};

TEST_F(GroupDevicesTest, ACallIsEnqueuedAndCompared) {
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  EXPECT_FALSE(sum->WaitFor(milliseconds(10)));
  work().done = true;
  EXPECT_EQ(EndOf(*sum), "");
  ASSERT_EQ(seen->calls.size(), 1U);
  EXPECT_EQ(Describe(seen->calls[0].operation), "AllReduce #1 (16 x float32 on cuda, sum)");
  ASSERT_EQ(cpu->calls.size(), 1U);
  EXPECT_EQ(Describe(cpu->calls[0].operation), "AllReduce #1 (16 x float32 on cuda, sum)");
}

// At the debug level DETAIL.
struct GroupDevicesDetailTest : GroupDevicesTest {
  GroupDevicesDetailTest() : GroupDevicesTest(true) {}
};

TEST_F(GroupDevicesDetailTest, NoDeviceBeginsACallThatDiffers) {
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  work().done = true;
  EXPECT_EQ(EndOf(*sum), "");
  cpu->failure = Error{ErrorCode::kMismatch, "the calls do not match"};
  EXPECT_THAT(ErrorOf(AllReduce()).message, HasSubstr("the calls do not match"));
  EXPECT_EQ(seen->calls.size(), 1U);
  EXPECT_EQ(group->state(), GroupState::kBroken);
}

TEST_F(GroupDevicesDetailTest, ACallThatDiffersEndsAsFailedForHooks) {
  std::vector<bool> ends;
  cpu->failure = Error{ErrorCode::kMismatch, "the calls do not match"};
  OperationHooks hooks({.on_start = {}, .on_end = [&](const OperationInfo& operation) {
                          ends.push_back(operation.has_succeeded);
                        }});
  EXPECT_FALSE(AllReduce());
  EXPECT_THAT(ends, testing::ElementsAre(false));
}

TEST_F(GroupDevicesDetailTest, AnAsynchronousCallReturnsAfterAllHaveCalled) {
  std::promise<void> returned;
  bool has_waited = false;
  cpu->in_call = [&] {  // the other rank comes late
    has_waited = returned.get_future().wait_for(milliseconds(20)) == std::future_status::timeout;
  };
  ASSERT_TRUE(AllReduce(kAsync));
  EXPECT_TRUE(has_waited);
  EXPECT_EQ(seen->calls.size(), 1U);
  returned.set_value();
}

TEST_F(GroupDevicesTest, ACallIsLoggedWhenTheDeviceHasCompletedIt) {
  // In a process of its own, because the level belongs to the process.
  const std::string log = ChildProcess([&] {
                            std::string lines;  // guarded by the log
                            SetLogSink([&](std::string_view line) { lines += line; });
                            ChooseDebugLevel(DebugLevel::kDetail);
                            auto sum = AllReduce();
                            work().done = true;
                            if (std::string error = EndOf(*sum); !error.empty()) return error;
                            group.reset();
                            return lines;
                          }).Text();
  const std::string call =
      "the world process group, rank 0 of 2: AllReduce #1 (16 x float32 on cuda, sum)";
  EXPECT_THAT(log, AllOf(HasSubstr("rankrun: trace: " + call + " begins\n"),
                         HasSubstr("rankrun: info: " + call + ", the first collective, took ")));
}

TEST_F(GroupDevicesTest, WaitIsForTheStreamOfItsThread) {
  int stream_of_call = 0, stream_of_wait = 0;
  SetStream(&stream_of_call);
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  EXPECT_EQ(seen->calls[0].stream, &stream_of_call);
  EXPECT_EQ(work().waited_in, nullptr);
  SetStream(&stream_of_wait);
  sum->Wait();
  EXPECT_EQ(work().waited_in, &stream_of_wait);
  EXPECT_FALSE(sum->IsCompleted());
  SetStream(nullptr);
}

TEST_F(GroupDevicesTest, ABlockingCallWaitsInItsStream) {
  int stream = 0;
  SetStream(&stream);
  ASSERT_TRUE(AllReduce(CallOptions()));
  EXPECT_EQ(work().waited_in, &stream);
  SetStream(nullptr);
}

TEST_F(GroupDevicesTest, AMismatchEndsTheWork) {
  cpu->failure = Error{ErrorCode::kMismatch, "the calls do not match"};
  auto sum = AllReduce();
  // The comparison may be faster than Enqueue.
  const std::string error = sum ? EndOf(*sum) : sum.error().message;
  EXPECT_THAT(error, HasSubstr("the calls do not match"));
  EXPECT_TRUE(seen->aborted);
  EXPECT_EQ(group->state(), GroupState::kBroken);
}

TEST_F(GroupDevicesTest, ARefusalByAnotherRankBreaksTheGroup) {
  cpu->failure = Error{ErrorCode::kInvalid, "rank 1 refused AllReduce #1"};
  auto sum = AllReduce();
  const std::string error = sum ? EndOf(*sum) : sum.error().message;
  EXPECT_THAT(error, HasSubstr("rank 1 refused AllReduce #1"));
  EXPECT_EQ(group->state(), GroupState::kBroken);
  EXPECT_TRUE(seen->aborted);
}

TEST_F(GroupDevicesTest, ItsOwnRefusalBreaksTheGroup) {
  auto error = ErrorOf(group->AllReduce(OnDevice(1), ReduceOp::kSum, {}));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("there is one device"), HasSubstr("the process group is broken")));
  ASSERT_EQ(cpu->refused.size(), 1U);
  EXPECT_THAT(cpu->refused[0], HasSubstr("there is one device"));
}

TEST_F(GroupDevicesTest, AFailureOfTheDeviceBreaksTheGroup) {
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  work().fails = true;
  EXPECT_THAT(EndOf(*sum), HasSubstr("AllReduce #1 (16 x float32 on cuda, sum)"));
  EXPECT_THAT(group->broken_reason(), HasSubstr("the device has failed"));
  EXPECT_THAT(cpu->aborted, HasSubstr("the device has failed"));
}

TEST_F(GroupDevicesTest, AFailureOfAnotherRankEndsTheWork) {
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  cpu->other_has_failed = true;
  EXPECT_THAT(EndOf(*sum), HasSubstr("rank 1 has failed"));
  EXPECT_TRUE(seen->aborted);
}

TEST_F(GroupDevicesTest, AFailureOfAnotherRankEndsTheWayToTheDevice) {
  cpu->other_has_failed = true;
  device->in_enqueue = [&] {
    while (!seen->aborted.load()) std::this_thread::yield();
  };
  EXPECT_THAT(ErrorOfAllReduce(), HasSubstr("rank 1 has failed"));
}

TEST_F(GroupDevicesTest, ADeathEndsTheWork) {
  auto sum = AllReduce();
  ASSERT_TRUE(sum);
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
  EXPECT_THAT(EndOf(*sum), HasSubstr("rank 1 was killed by SIGKILL"));
  EXPECT_TRUE(seen->aborted);
}

TEST_F(GroupDevicesTest, AWorkThatLastsTooLongTimesOut) {
  CallOptions options{.timeout = milliseconds(30)};
  options.async = true;
  auto sum = AllReduce(options);
  ASSERT_TRUE(sum);
  EXPECT_THAT(EndOf(*sum), HasSubstr("all ranks have made the call, but the device has not"));
  EXPECT_EQ(group->state(), GroupState::kBroken);
}

TEST_F(GroupDevicesTest, WhileTheComparisonLastsItHasTheTimeout) {
  std::atomic<bool> goes_on = false;
  cpu->in_call = [&] { goes_on.wait(false); };
  CallOptions options{.timeout = milliseconds(1)};
  options.async = true;
  auto sum = AllReduce(options);
  ASSERT_TRUE(sum);
  EXPECT_FALSE(sum->WaitFor(milliseconds(50)));
  cpu->failure = Error{ErrorCode::kTimeout, "no call of rank 1"};
  goes_on = true;
  goes_on.notify_all();
  EXPECT_THAT(EndOf(*sum), HasSubstr("no call of rank 1"));
}

TEST_F(GroupDevicesTest, AMessageOnItsWayIsWaitedForInTheThread) {
  cpu->has_messages = true;
  auto sent = group->ISend(OnDevice(), GlobalRank{1}, 5, {});
  ASSERT_TRUE(sent);
  ASSERT_EQ(seen->messages.size(), 1U);
  int stream = 0;
  std::atomic<bool> is_over = false;
  std::thread waiter([&] {
    SetStream(&stream);
    sent->Wait();
    is_over = true;
  });
  EXPECT_FALSE(is_over.load());
  seen->messages[0]->is_open = true;
  waiter.join();
  EXPECT_EQ(seen->messages[0]->waited_in, &stream);
  EXPECT_FALSE(sent->IsCompleted());
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");  // for ~Group
}

TEST_F(GroupDevicesTest, AMessageThatCannotStartBreaksTheGroup) {
  device->failure = Error{ErrorCode::kSystem, "CUDA: no memory"};
  EXPECT_THAT(ErrorOf(group->IRecv(OnDevice(), GlobalRank{1}, 5, {})).message,
              AllOf(HasSubstr("Recv (16 x float32 on cuda from rank 1, tag 5)"),
                    HasSubstr("CUDA: no memory")));
  EXPECT_EQ(group->state(), GroupState::kBroken);
}

TEST_F(GroupDevicesTest, ADeathEndsAMessageOnItsWay) {
  cpu->has_messages = true;
  auto sent = group->ISend(OnDevice(), GlobalRank{1}, 5, {});
  ASSERT_TRUE(sent);
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
  EXPECT_THAT(EndOf(*sent), HasSubstr("rank 1 was killed by SIGKILL"));
  EXPECT_TRUE(seen->aborted);
}

TEST_F(GroupDevicesTest, AFailedEnqueueHasTheErrorOfTheComparisonThatEndedIt) {
  cpu->failure = Error{ErrorCode::kMismatch, "the calls do not match"};
  device->in_enqueue = [&] {
    while (!seen->aborted.load()) std::this_thread::yield();
  };
  EXPECT_THAT(ErrorOfAllReduce(), HasSubstr("the calls do not match"));
}

TEST_F(GroupDevicesTest, AFailedEnqueueBreaksTheGroup) {
  device->failure = Error{ErrorCode::kSystem, "NCCL: internal error"};
  EXPECT_THAT(ErrorOfAllReduce(), HasSubstr("NCCL: internal error"));
  EXPECT_THAT(cpu->aborted, HasSubstr("NCCL: internal error"));
}

TEST_F(GroupDevicesTest, CallsAfterAFailureFail) {
  device->failure = Error{ErrorCode::kSystem, "NCCL: internal error"};
  EXPECT_THAT(ErrorOfAllReduce(), HasSubstr("NCCL: internal error"));
  EXPECT_THAT(ErrorOfAllReduce(), HasSubstr("the process group is broken"));
  EXPECT_EQ(seen->calls.size(), 1U);
}

TEST_F(GroupTest, WithoutABackendForDevicesTheirTensorsAreRefused) {
  auto group = Make(0, 2);
  Tensor tensor(data);
  tensor.device = {.type = DeviceType::kCuda, .index = 3};
  EXPECT_THAT(ErrorOf(group->AllReduce(tensor, ReduceOp::kSum, {})).message,
              HasSubstr("the call is for cuda:3, but the group's backend is"));
}

}  // namespace
}  // namespace rankrun::comm
