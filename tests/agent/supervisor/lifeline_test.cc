#include "agent/supervisor/lifeline.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

struct LifelineTest : testing::Test {
  LifelineTest() {
    int ends[2];
    if (pipe(ends) == 0) {
      read_end.Reset(ends[0]);
      write_end.Reset(ends[1]);
    }
  }
  std::string RefusalOf(int fd) {
    auto watched = Lifeline::Watch(loop, fd, [] {});
    if (watched) return "not refused";
    EXPECT_EQ(watched.error().code, ErrorCode::kInvalid);
    return watched.error().message;
  }

  Loop loop;
  Fd read_end;
  Fd write_end;
  int ends_seen = 0;
};

TEST_F(LifelineTest, ACloseOfTheOtherEndIsReportedOnce) {
  auto lifeline = Lifeline::Watch(loop, read_end.get(), [this] { ends_seen += 1; });
  ASSERT_TRUE(lifeline);
  ASSERT_EQ(write(write_end.get(), "noise", 5), 5);
  EXPECT_FALSE(loop.RunUntil([this] { return ends_seen > 0; }, std::chrono::milliseconds(20)));
  write_end.Reset();
  EXPECT_TRUE(loop.RunUntil([this] { return ends_seen > 0; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([this] { return ends_seen > 1; }, std::chrono::milliseconds(20)));
}

TEST_F(LifelineTest, TheDescriptorStaysBlockingForOtherProcesses) {
  auto lifeline = Lifeline::Watch(loop, read_end.get(), [] {});
  ASSERT_TRUE(lifeline);
  EXPECT_EQ(fcntl(read_end.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(LifelineTest, ADescriptorThatCannotBeWatchedIsRefused) {
  EXPECT_EQ(RefusalOf(999), "--lifeline 999: want an open descriptor that can be read");
  std::string number = std::to_string(write_end.get());
  EXPECT_EQ(RefusalOf(write_end.get()),
            "--lifeline " + number + ": want an open descriptor that can be read");
  test::TempFolder folder;
  Fd file(open(folder.Write("file", "").c_str(), O_RDONLY));
  EXPECT_EQ(RefusalOf(file.get()),
            "--lifeline " + std::to_string(file.get()) + ": want a pipe or a socket");
}

TEST_F(LifelineTest, ADescriptorThatRankrunDoesNotInheritIsRefused) {
  Fd ours(fcntl(read_end.get(), F_DUPFD_CLOEXEC, 3));
  for (int fd : {0, 1, 2, ours.get()}) {
    EXPECT_EQ(RefusalOf(fd), "--lifeline " + std::to_string(fd) +
                                 ": want a descriptor that rankrun inherits, above 2");
  }
}

TEST_F(LifelineTest, TheEndOfAProcessIsReportedOnce) {
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    char byte;
    write_end.Reset();
    _exit(read(read_end.get(), &byte, 1) == 0 ? 0 : 1);
  }
  auto lifeline = Lifeline::WatchProcess(loop, pid, [this] { ends_seen += 1; });
  ASSERT_TRUE(lifeline) << lifeline.error().message;
  EXPECT_FALSE(loop.RunUntil([this] { return ends_seen > 0; }, std::chrono::milliseconds(20)));
  write_end.Reset();
  EXPECT_TRUE(loop.RunUntil([this] { return ends_seen > 0; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([this] { return ends_seen > 1; }, std::chrono::milliseconds(20)));
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  auto late = Lifeline::WatchProcess(loop, pid, [] {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rankrun::agent
