#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <memory>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_poll.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

struct PollTest : testing::Test {
  void Open(std::function<void()> on_readable) {
    auto opened = Poll::Open(loop, pipe.read_end.get(), std::move(on_readable));
    ASSERT_TRUE(opened) << opened.error().message;
    poll = std::move(*opened);
  }
  void SendByte() { ASSERT_EQ(write(pipe.write_end.get(), "x", 1), 1); }
  ssize_t Read() {
    char byte;
    return read(pipe.read_end.get(), &byte, 1);
  }

  test::Pipe pipe = test::MakePipe();
  Loop loop;
  std::unique_ptr<Poll> poll;
  int calls = 0;
};

TEST_F(PollTest, ReportsAReadableDescriptor) {
  Open([&] { calls += static_cast<int>(Read()); });
  poll->Start();
  EXPECT_FALSE(loop.RunUntil([&] { return calls > 0; }, milliseconds(5)));
  SendByte();
  EXPECT_TRUE(loop.RunUntil([&] { return calls > 0; }, test::kLong));
}

TEST_F(PollTest, ReportsAgainUntilItIsRead) {
  Open([&] { calls += 1; });
  poll->Start();
  poll->Start();
  SendByte();
  EXPECT_TRUE(loop.RunUntil([&] { return calls >= 3; }, test::kLong));
}

TEST_F(PollTest, IsSilentBeforeStart) {
  Open([&] { calls += 1; });
  SendByte();
  EXPECT_FALSE(loop.RunUntil([&] { return calls > 0; }, milliseconds(10)));
}

TEST_F(PollTest, IsSilentAfterStopAndCanGoOn) {
  Open([&] { calls += 1; });
  poll->Start();
  SendByte();
  poll->Stop();
  EXPECT_FALSE(loop.RunUntil([&] { return calls > 0; }, milliseconds(10)));
  poll->Start();
  EXPECT_TRUE(loop.RunUntil([&] { return calls > 0; }, test::kLong));
}

TEST_F(PollTest, ItsCallbackMayStopIt) {
  Open([&] {
    calls += 1;
    poll->Stop();
  });
  poll->Start();
  SendByte();
  EXPECT_TRUE(loop.RunUntil([&] { return calls == 1; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([&] { return calls > 1; }, milliseconds(10)));
}

TEST_F(PollTest, ReportsTheHangUpOfTheOtherEnd) {
  ssize_t count = -1;
  Open([&] {
    count = Read();
    poll->Stop();
  });
  poll->Start();
  pipe.write_end.Reset();
  EXPECT_TRUE(loop.RunUntil([&] { return count == 0; }, test::kLong));
}

TEST_F(PollTest, DoesNotOwnTheDescriptor) {
  Open([] {});
  poll->Start();
  poll.reset();
  test::RunReadyCallbacks(loop);
  EXPECT_TRUE(test::IsOpen(pipe.read_end.get()));
}

TEST_F(PollTest, ARegularFileCannotBePolled) {
  test::TempFolder folder;
  Fd file(open(folder.Write("file", "text").c_str(), O_RDONLY | O_CLOEXEC));
  auto opened = Poll::Open(loop, file.get(), [] {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kSystem);
  EXPECT_EQ(opened.error().message, "watch a descriptor: Operation not permitted");
}

TEST_F(PollTest, ReportsTheEndOfAProcessByItsPidfd) {
  pid_t pid = test::Fork([&] { return Read() == 1 ? 0 : 1; });
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  bool ended = false;
  auto opened = Poll::Open(loop, pidfd.get(), [&] { ended = true; });
  ASSERT_TRUE(opened);
  (*opened)->Start();
  EXPECT_FALSE(loop.RunUntil([&] { return ended; }, milliseconds(10)));
  SendByte();
  EXPECT_TRUE(loop.RunUntil([&] { return ended; }, test::kLong));
  EXPECT_EQ(test::WaitForExit(pid), ProcessExit{});
}

}  // namespace
}  // namespace rankrun
