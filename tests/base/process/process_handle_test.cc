#include "base/process/process_handle.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include "tests/base/denied_call.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using test::DeniedCall;

constexpr uint32_t kPidfdType = P_PIDFD;

TimePoint Late() { return std::chrono::steady_clock::now() + test::kLong; }

bool IsReadable(const ProcessHandle& handle, int milliseconds) {
  pollfd wait{.fd = handle.fd(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, milliseconds) > 0;
}

// The kernels and sandboxes of the tests: everything works, or one call does not.
struct ProcessHandleTest : ::testing::TestWithParam<DeniedCall> {
  // Runs `body` in a process in which the call fails. It returns the number of the step that
  // failed, or 0.
  static void Confined(const std::function<int()>& body) {
    const DeniedCall& call = GetParam();
    pid_t confined = test::Fork([&] {
      if (!call.name.empty() && !test::Deny(call)) return 98;
      return body();
    });
    EXPECT_EQ(test::WaitForExit(confined), ProcessExit{});
  }
};

TEST_P(ProcessHandleTest, AChildIsSignalledAwaitedAndReapedOnce) {
  Confined([] {
    pid_t child = test::Fork([] { return pause(); });
    auto handle = ProcessHandle::Open(child);
    if (!handle) return 1;
    if (handle->HasEnded() || handle->Reap()) return 2;
    if (handle->AwaitEnd(std::chrono::steady_clock::now() + std::chrono::milliseconds(60))) {
      return 3;
    }
    if (!handle->Send(SIGTERM) || !handle->AwaitEnd(Late())) return 4;
    if (!IsReadable(*handle, 10'000) || !IsReadable(*handle, 0)) return 5;
    if (handle->Reap() != ProcessExit{.signaled = true, .value = SIGTERM}) return 6;
    if (handle->Reap() || !handle->HasEnded()) return 7;
    return handle->Send(SIGTERM) || errno != ESRCH ? 8 : 0;
  });
}

TEST_P(ProcessHandleTest, AnotherProcessHasEndedBeforeItsParentReapsIt) {
  Confined([] {
    test::Pipe pipe = test::MakePipe();
    pid_t parent = test::Fork([&] {
      pid_t child = test::Fork([] { return pause(); });
      if (write(pipe.write_end.get(), &child, sizeof child) != sizeof child) return 1;
      return pause();
    });
    pid_t grandchild = 0;
    if (read(pipe.read_end.get(), &grandchild, sizeof grandchild) != sizeof grandchild) return 1;
    auto handle = ProcessHandle::Open(grandchild);
    if (!handle || handle->HasEnded() || handle->Reap()) return 2;
    if (!handle->Send(SIGKILL) || !handle->AwaitEnd(Late())) return 3;
    if (handle->Reap()) return 4;
    kill(parent, SIGKILL);
    test::WaitForExit(parent);
    return handle->HasEnded() ? 0 : 5;
  });
}

TEST_P(ProcessHandleTest, AProcessThatHasEndedIsNotFound) {
  Confined([] {
    pid_t child = test::Fork([] { return 0; });
    test::WaitForExit(child);
    auto handle = ProcessHandle::Open(child);
    return !handle && handle.error().code == ErrorCode::kNotFound ? 0 : 1;
  });
}

// The timer of a handle without a pidfd becomes readable while the process runs.
TEST_P(ProcessHandleTest, TheEndIsNotedByAPollOnly) {
  Confined([] {
    test::Pipe input = test::MakePipe();
    pid_t child = test::Fork([&] {
      char byte;
      input.write_end.Reset();
      return read(input.read_end.get(), &byte, 1) == 0 ? 3 : 1;
    });
    auto handle = ProcessHandle::Open(child);
    if (!handle) return 1;
    for (int i = 0; i < 3; ++i) {
      pollfd wait{.fd = handle->fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, 60);
      if (handle->HasEnded()) return 2;
    }
    input.write_end.Reset();
    pollfd wait{.fd = handle->fd(), .events = POLLIN, .revents = 0};
    while (!handle->HasEnded()) poll(&wait, 1, -1);
    return handle->Reap() == ProcessExit{.signaled = false, .value = 3} ? 0 : 3;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, ProcessHandleTest,
    ::testing::Values(
        DeniedCall{},  //
        DeniedCall{.name = "pidfd_open", .number = SYS_pidfd_open, .error = ENOSYS},
        DeniedCall{.name = "pidfd_open", .number = SYS_pidfd_open, .error = EPERM},
        DeniedCall{.name = "pidfd_send_signal", .number = SYS_pidfd_send_signal, .error = ENOSYS},
        DeniedCall{.name = "pidfd_send_signal", .number = SYS_pidfd_send_signal, .error = EPERM},
        DeniedCall{.name = "waitid_P_PIDFD",
                   .number = SYS_waitid,
                   .error = EINVAL,
                   .mask = ~0U,
                   .value = kPidfdType},
        DeniedCall{.name = "waitid_P_PIDFD",
                   .number = SYS_waitid,
                   .error = EPERM,
                   .mask = ~0U,
                   .value = kPidfdType}),
    [](const auto& info) {
      if (info.param.name.empty()) return std::string("Whole");
      return info.param.name + "_" + std::to_string(info.param.error);
    });

// Its first thread may end before the others; /proc then shows a zombie.
TEST(ProcessHandleByTimerTest, AProcessLivesAsLongAsAThread) {
  pid_t confined = test::Fork([] {
    if (!test::Deny({.name = "pidfd_open", .number = SYS_pidfd_open, .error = ENOSYS})) return 98;
    test::Pipe input = test::MakePipe();
    pid_t child = test::Fork([&] {
      std::thread second([&] {
        char byte;
        input.write_end.Reset();
        _exit(read(input.read_end.get(), &byte, 1) == 0 ? 0 : 1);
      });
      second.detach();
      syscall(SYS_exit, 0);
      return 1;
    });
    auto handle = ProcessHandle::Open(child);
    if (!handle) return 1;
    std::string stat = "/proc/" + std::to_string(child) + "/stat";
    auto is_zombie = [&] { return test::ReadWholeFile(stat).find(") Z ") != std::string::npos; };
    if (!test::WaitFor(is_zombie) || handle->HasEnded()) return 2;
    input.write_end.Reset();
    return handle->AwaitEnd(Late()) && handle->Reap() == ProcessExit{} ? 0 : 3;
  });
  EXPECT_EQ(test::WaitForExit(confined), ProcessExit{});
}

}  // namespace
}  // namespace rankrun
