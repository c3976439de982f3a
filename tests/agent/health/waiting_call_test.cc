#include "agent/health/waiting_call.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace rankrun::agent {
namespace {

std::string LineOf(long number, const std::string& first = "0x0", const std::string& second = "0x0",
                   const std::string& third = "0x0") {
  return std::to_string(number) + " " + first + " " + second + " " + third +
         " 0x0 0x0 0x0 0x7ffd 0x7f00\n";
}

TEST(ParseCallTest, NamesACallAndItsDescriptor) {
  WaitingCall call = ParseCall(LineOf(SYS_read, "0x1f"));
  EXPECT_EQ(call.kind, CallKind::kFile);
  EXPECT_EQ(call.name, "read");
  EXPECT_EQ(call.descriptor, 31);
}

TEST(ParseCallTest, ARunningThreadIsInNoCall) {
  EXPECT_EQ(ParseCall("running\n").kind, CallKind::kNone);
  EXPECT_EQ(ParseCall("-1 0x7ffd 0x7f00\n").kind, CallKind::kNone);
  EXPECT_EQ(ParseCall("").kind, CallKind::kNone);
}

TEST(ParseCallTest, KeepsTheNumberOfAnUnknownCall) {
  EXPECT_EQ(ParseCall(LineOf(9'999)).name, "system call 9999");
  EXPECT_EQ(ParseCall(LineOf(9'999)).kind, CallKind::kOther);
}

TEST(ParseCallTest, APollOfNothingIsASleep) {
  EXPECT_EQ(ParseCall(LineOf(SYS_pselect6)).kind, CallKind::kSleep);
  EXPECT_EQ(ParseCall(LineOf(SYS_pselect6, "0x4")).kind, CallKind::kPoll);
  EXPECT_EQ(ParseCall(LineOf(SYS_ppoll, "0x7ffd")).kind, CallKind::kSleep);
  EXPECT_EQ(ParseCall(LineOf(SYS_ppoll, "0x7ffd", "0x2")).kind, CallKind::kPoll);
}

TEST(ParseCallTest, KnowsTheListOfAPoll) {
  const WaitingCall call = ParseCall(LineOf(SYS_ppoll, "0x7ffd", "0x2"));
  EXPECT_EQ(call.polled, 0x7ffdU);
  EXPECT_EQ(call.polled_count, 2U);
  const WaitingCall rest = ParseCall(LineOf(SYS_restart_syscall, "0x7ffd", "0x3"), "do_sys_poll");
  EXPECT_EQ(rest.polled, 0x7ffdU);
  EXPECT_EQ(rest.polled_count, 3U);
  EXPECT_EQ(ParseCall(LineOf(SYS_epoll_pwait, "0x4")).epoll, 4);
  EXPECT_EQ(ParseCall(LineOf(SYS_read, "0x4", "0x2")).polled, 0U);
}

TEST(ParseCallTest, AJoinNamesTheThreadForWhoseEndItWaits) {
  const auto joined = [](const std::string& operation) {
    return ParseCall(LineOf(SYS_futex, "0x7ffd", operation, "0x1f")).joined;
  };
  EXPECT_EQ(joined("0x109"), 31);  // FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME
  EXPECT_EQ(joined("0x0"), 31);
  EXPECT_EQ(joined("0x189"), 0) << "private: a lock";
  EXPECT_EQ(ParseCall(LineOf(SYS_read, "0x7ffd", "0x109", "0x1f")).joined, 0);
}

TEST(ParseCallTest, ACallThatContinuesIsKnownByItsWaitChannel) {
  const std::string line = LineOf(SYS_restart_syscall, "0x7f00", "0x2");
  EXPECT_EQ(ParseCall(line, "hrtimer_nanosleep").kind, CallKind::kSleep);
  EXPECT_EQ(ParseCall(line, "futex_do_wait").kind, CallKind::kLock);
  EXPECT_EQ(ParseCall(line, "do_sys_poll").kind, CallKind::kPoll);
  EXPECT_EQ(ParseCall(line, "").name, "restart_syscall");
  const std::string sleep = LineOf(SYS_restart_syscall, "0x1", "0x0", "0x7f00");
  EXPECT_EQ(ParseCall(sleep, "do_syscall_64").kind, CallKind::kSleep);
}

TEST(ParseCallTest, FindsThePathOfACallThatNamesOne) {
  const WaitingCall at = ParseCall(LineOf(SYS_openat, "0xffffff9c", "0x7ffdd7c98a27", "0x80001"));
  EXPECT_EQ(at.path, 0x7ffdd7c98a27U);
  EXPECT_EQ(at.directory, AT_FDCWD);
  EXPECT_EQ(at.open_flags, static_cast<uint64_t>(O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(at.descriptor, -1);
  EXPECT_EQ(ParseCall(LineOf(SYS_statx, "0x7", "0x10")).directory, 7);
  EXPECT_EQ(ParseCall(LineOf(SYS_chdir, "0x10")).path, 0x10U);
  EXPECT_EQ(ParseCall(LineOf(SYS_read, "0x7", "0x10")).path, 0U);
}

TEST(ParseCallTest, KnowsTheCallsThatWaitForLocksOfFiles) {
  EXPECT_TRUE(ParseCall(LineOf(SYS_flock, "0x3", "0x2")).waits_for_lock);
  EXPECT_TRUE(ParseCall(LineOf(SYS_fcntl, "0x3", "0x7")).waits_for_lock) << "F_SETLKW";
  EXPECT_TRUE(ParseCall(LineOf(SYS_fcntl, "0x3", "0x26")).waits_for_lock) << "F_OFD_SETLKW";
  EXPECT_FALSE(ParseCall(LineOf(SYS_fcntl, "0x3", "0x4")).waits_for_lock) << "F_SETFL";
  EXPECT_FALSE(ParseCall(LineOf(SYS_futex, "0x10")).waits_for_lock);
}

}  // namespace
}  // namespace rankrun::agent
