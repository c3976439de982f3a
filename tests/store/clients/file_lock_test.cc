#include "store/clients/file_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/base/support.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct FileLockTest : testing::Test {
  Result<FileLock> Acquire(std::chrono::milliseconds timeout) {
    return FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)),
                             MonotonicClock().Now() + timeout);
  }

  test::TempFolder folder;
  std::string path = folder.Write("file", "");
};

TEST_F(FileLockTest, KeepsOutOthersInTheSameProcessUntilItsEnd) {
  auto first = Acquire(0ms);
  ASSERT_TRUE(first);
  auto second = Acquire(5ms);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(second.error().message, HasSubstr("another process has held the lock for 0.0"));
  { FileLock ended = std::move(*first); }
  EXPECT_TRUE(Acquire(0ms));
}

TEST_F(FileLockTest, AForkedProcessDoesNotKeepIt) {
  std::optional<FileLock> lock(std::move(*Acquire(0ms)));
  pid_t child = test::Fork([] {
    for (;;) pause();
    return 0;
  });
  lock.reset();
  EXPECT_TRUE(Acquire(0ms));
  kill(child, SIGKILL);
  EXPECT_EQ(test::WaitForExit(child), (ProcessExit{true, SIGKILL}));
}

TEST_F(FileLockTest, NeedsAFileThatIsOpenForWriting) {
  auto lock =
      FileLock::Acquire(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), MonotonicClock().Now());
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kSystem);
}

}  // namespace
}  // namespace rankrun::store
