// Calls of other threads while a group ends and is destroyed.

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/diagnosis/operation_hooks.h>

#include "tests/base/support.h"
#include "tests/comm/group/group_fixture.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using test::WaitFor;
using testing::HasSubstr;

struct GroupCallsTest : GroupTest {};

// Ends and destroys a group while a thread is in `call`. Returns whether the group has outlived
// the call.
bool GroupOutlives(std::unique_ptr<Group> group, const std::function<void(Group&)>& call) {
  std::atomic<bool> has_begun = false, is_destroyed = false, was_in_time = true;
  Group& used = *group;
  OperationHooks hooks({.on_start =
                            [&](const OperationInfo&) {
                              has_begun = true;
                              // It takes much less if it does not wait.
                              was_in_time =
                                  !WaitFor([&] { return is_destroyed.load(); }, milliseconds(300));
                            },
                        .on_end = {}});
  std::jthread caller([&] { call(used); });
  EXPECT_TRUE(WaitFor([&] { return has_begun.load(); }));
  group->End("aborted the group");
  group.reset();
  is_destroyed = true;
  caller.join();
  return was_in_time;
}

TEST_F(GroupCallsTest, AGroupThatWasEndedIsDestroyedOnceAllCallsHaveReturned) {
  const std::vector<std::function<void(Group&)>> calls{
      [&](Group& group) { static_cast<void>(group.Send(data, GroupRank{1}, 0, {})); },
      [&](Group& group) { static_cast<void>(group.Recv(data, GroupRank{1}, 0, {})); },
      [&](Group& group) { static_cast<void>(group.ISend(data, GroupRank{1}, 0, {})); },
      [&](Group& group) { static_cast<void>(group.IRecv(data, GroupRank{1}, 0, {})); },
      [&](Group& group) { static_cast<void>(group.AllReduce(data, ReduceOp::kSum, {})); },
      [&](Group& group) { static_cast<void>(group.MonitoredBarrier({}, true)); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_TRUE(GroupOutlives(Make(0, 2), calls[i])) << "call " << i;
  }
}

// Returns whether the thread sleeps until a mutex of `group` is free.
bool AwaitsMutexOf(const Group& group, pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  std::string number;
  uintptr_t address = 0;
  if (!(file >> number >> std::hex >> address)) return false;
  const auto begin = reinterpret_cast<uintptr_t>(&group);
  return address >= begin && address < begin + sizeof group;
}

TEST_F(GroupCallsTest, ACallThatWaitsForAnotherOneOutlivesNoGroup) {
  if (!std::ifstream("/proc/self/syscall").good()) GTEST_SKIP() << "there is no /proc/self/syscall";
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  Group& used = *group;
  std::atomic<bool> is_in = false;
  std::atomic<pid_t> second_thread = 0;
  backend->in_call = [&] {
    is_in = true;
    EXPECT_TRUE(WaitFor([&] { return backend->has_ended.load(); }));
  };
  backend->failure = Error{ErrorCode::kCancelled, "aborted"};
  Error first, second;
  std::jthread caller([&] { first = ErrorOf(used.AllReduce(data, ReduceOp::kSum, {})); });
  EXPECT_TRUE(WaitFor([&] { return is_in.load(); }));
  std::jthread behind([&] {
    second_thread = gettid();
    second = ErrorOf(used.AllReduce(data, ReduceOp::kSum, {}));
  });
  EXPECT_TRUE(WaitFor([&] { return second_thread != 0 && AwaitsMutexOf(used, second_thread); }));
  group->End("aborted the group");
  group.reset();
  caller.join();
  behind.join();
  EXPECT_THAT(first.message, HasSubstr("aborted"));
  EXPECT_THAT(second.message, HasSubstr("rank 0 aborted the group"));
}

}  // namespace
}  // namespace rankrun::comm
