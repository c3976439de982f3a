#include "agent/output/stdin_feed.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun::agent {
namespace {

struct StdinFeedTest : testing::Test {
  StdinFeedTest() { signal(SIGPIPE, SIG_IGN); }

  void Start(int fd, int workers) {
    source.emplace(loop, fd, [this] { return may_read; });
    StartAgain(workers);
  }
  // Begins the next attempt.
  void StartAgain(int workers) {
    feed.reset();
    ends.clear();
    texts.clear();
    feed.emplace(loop, *source, workers);
    for (int rank = 0; rank < workers; ++rank) {
      Prepare(rank);
    }
    for (int rank = 0; rank < workers; ++rank) feed->OnStarted(rank);
  }
  void Prepare(int rank) {
    ASSERT_TRUE(feed->Prepare(rank));
    ends.emplace_back(fcntl(feed->worker_end(rank), F_DUPFD_CLOEXEC, 0));
    fcntl(ends.back().get(), F_SETFL, O_NONBLOCK);
    texts.emplace_back();
  }
  // Reads what one worker has received so far. Returns whether its input has
  // ended.
  bool Read(size_t rank) {
    char buffer[8192];
    for (;;) {
      ssize_t count = read(ends[rank].get(), buffer, sizeof buffer);
      if (count < 0) return false;
      if (count == 0) return true;
      texts[rank].append(buffer, static_cast<size_t>(count));
    }
  }
  bool Ends(size_t rank) {
    return loop.RunUntil([&] { return Read(rank); }, test::kLong);
  }

  bool may_read = true;
  Fd late_input;  // outlives the loop, which waits for reads in progress
  Loop loop;
  std::optional<StdinSource> source;
  std::optional<StdinFeed> feed;
  std::vector<Fd> ends;
  std::vector<std::string> texts;
};

TEST_F(StdinFeedTest, APausedSourceReadsNothing) {
  int ends_of_pipe[2];
  ASSERT_EQ(pipe2(ends_of_pipe, O_CLOEXEC), 0);
  Fd input(ends_of_pipe[0]);
  Fd keys(ends_of_pipe[1]);
  Start(input.get(), 1);
  source->Pause(true);
  ASSERT_EQ(write(keys.get(), "abc", 3), 3);
  int turns = 0;
  std::function<void()> turn = [&] {
    if (++turns < 5) loop.Post(turn);
  };
  loop.Post(turn);
  EXPECT_TRUE(loop.RunUntil([&] { return turns == 5; }, test::kLong));
  char buffer[3];
  EXPECT_EQ(read(input.get(), buffer, 2), 2) << "another process reads it";
  source->Pause(false);
  keys.Reset();
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0], "c");
}

TEST_F(StdinFeedTest, ATerminalIsReadOnceItMayBe) {
  int ours = Fd::kNone, theirs = Fd::kNone;
  ASSERT_EQ(openpty(&ours, &theirs, nullptr, nullptr, nullptr), 0);
  Fd keyboard(ours), terminal(theirs);
  may_read = false;
  Start(terminal.get(), 1);
  ASSERT_EQ(write(keyboard.get(), "shell\n", 6), 6);
  test::RunReadyCallbacks(loop);
  char buffer[16];
  EXPECT_EQ(read(terminal.get(), buffer, sizeof buffer), 6) << "another process reads it";
  ASSERT_EQ(write(keyboard.get(), "job\n", 4), 4);
  may_read = true;
  EXPECT_TRUE(loop.RunUntil([&] { return Read(0) || texts[0] == "job\n"; }, test::kLong));
}

TEST_F(StdinFeedTest, EveryWorkerGetsAllOfAFile) {
  test::TempFolder folder;
  std::string text(300'000, 'x');
  Fd file(open(folder.Write("in", text).c_str(), O_RDONLY | O_CLOEXEC));
  Start(file.get(), 3);
  auto all_end = [this] {
    bool first = Read(0), second = Read(1), third = Read(2);
    return first && second && third;
  };
  ASSERT_TRUE(loop.RunUntil(all_end, test::kLong));
  for (const std::string& got : texts) EXPECT_EQ(got, text);
}

TEST_F(StdinFeedTest, APipeIsFollowedAsItIsWritten) {
  test::Pipe pipe = test::MakePipe();
  Start(pipe.read_end.get(), 2);
  for (const char* line : {"one\n", "two\n"}) {
    ASSERT_EQ(write(pipe.write_end.get(), line, 4), 4);
    ASSERT_TRUE(loop.RunUntil([&] { return Read(0) || texts[0].ends_with(line); }, test::kLong));
  }
  pipe.write_end.Reset();
  EXPECT_TRUE(Ends(0));
  EXPECT_TRUE(Ends(1));
  EXPECT_EQ(texts[0], "one\ntwo\n");
  EXPECT_EQ(texts[1], "one\ntwo\n");
  EXPECT_EQ(fcntl(pipe.read_end.get(), F_GETFL) & O_NONBLOCK, 0) << "it may be shared";
}

TEST_F(StdinFeedTest, ASocketIsRead) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  Start(theirs.get(), 1);
  ASSERT_EQ(write(ours.get(), "text", 4), 4);
  ours.Reset();
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0], "text");
  EXPECT_EQ(fcntl(theirs.get(), F_GETFL) & O_NONBLOCK, 0) << "it may be shared";
}

TEST_F(StdinFeedTest, ANamedPipeWhoseWriterHasGoneEnds) {
  test::TempFolder folder;
  std::string path = folder.Path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Fd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  {
    Fd writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(write(writer.get(), "text", 4), 4);
  }
  Start(reader.get(), 1);
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0], "text");
}

TEST_F(StdinFeedTest, UndeliveredInputGoesToTheNextAttempt) {
  test::Pipe pipe = test::MakePipe();
  Start(pipe.read_end.get(), 2);
  std::string sent;
  fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  auto write_block = [&] {
    std::string block(4096, static_cast<char>('a' + sent.size() / 4096 % 26));
    ssize_t count = write(pipe.write_end.get(), block.data(), block.size());
    if (count > 0) sent += block.substr(0, static_cast<size_t>(count));
    return count > 0;
  };
  // No worker reads: their pipes are full and a piece is pending.
  for (int idle = 0; idle < 20;) {
    idle = write_block() ? 0 : idle + 1;
    test::RunReadyCallbacks(loop);
  }
  Read(0);
  std::string first = texts[0];
  StartAgain(1);
  pipe.write_end.Reset();
  EXPECT_TRUE(Ends(0));
  EXPECT_TRUE(first + texts[0] == sent) << first.size() << " " << texts[0].size();
}

// The input is read in the pool, like a pipe of another user.
TEST_F(StdinFeedTest, AReadThatBlocksIsOneForAllAttemptsAndLosesNothing) {
  late_input.Reset(eventfd(0, EFD_CLOEXEC));
  Start(late_input.get(), 1);
  for (int attempt = 0; attempt < 8; ++attempt) {
    test::RunReadyCallbacks(loop);
    StartAgain(1);
  }
  bool ran = false;
  RunInPool(
      loop, [] {}, [&] { ran = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return ran; }, test::kLong)) << "its threads are all taken";
  uint64_t value = 7;
  ASSERT_EQ(write(late_input.get(), &value, sizeof value), 8);
  EXPECT_TRUE(loop.RunUntil([&] { return Read(0) || texts[0].size() == 8; }, test::kLong));
  EXPECT_EQ(texts[0].substr(0, 1), "\7");
  feed.reset();
  source.reset();
  ASSERT_EQ(write(late_input.get(), &value, sizeof value), 8);  // lets the last read end
}

TEST_F(StdinFeedTest, TheSlowestHoldsBackTheReading) {
  test::Pipe pipe = test::MakePipe();
  Start(pipe.read_end.get(), 2);
  size_t written = 0;
  fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  std::string block(65536, 'x');
  // Worker 1 reads nothing.
  for (int idle = 0; idle < 20;) {
    ssize_t count = write(pipe.write_end.get(), block.data(), block.size());
    if (count > 0) {
      written += static_cast<size_t>(count);
      idle = 0;
    } else {
      idle += 1;
    }
    Read(0);
    test::RunReadyCallbacks(loop);
  }
  EXPECT_LT(written, 1'000'000u);
  ends[1].Reset();  // the worker is skipped from now on
  pipe.write_end.Reset();
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0].size(), written);
}

TEST_F(StdinFeedTest, NothingIsReadBeforeAllWorkersHaveStarted) {
  test::TempFolder folder;
  Fd file(open(folder.Write("in", "text").c_str(), O_RDONLY | O_CLOEXEC));
  source.emplace(loop, file.get(), [] { return true; });
  feed.emplace(loop, *source, 2);
  Prepare(0);
  Prepare(1);
  feed->OnStarted(0);
  test::RunReadyCallbacks(loop);
  bool is_behind = false;  // a read would be in the pool before this job
  RunInPool(
      loop, [] {}, [&] { is_behind = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return is_behind; }, test::kLong));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_CUR), 0);
  ends[1].Reset();
  feed->OnGivenUp(1);
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0], "text");
}

TEST_F(StdinFeedTest, AClosedInputIsAnEndAtOnce) {
  Start(-1, 1);
  EXPECT_TRUE(Ends(0));
  EXPECT_EQ(texts[0], "");
}

TEST_F(StdinFeedTest, MayEndWhileItReads) {
  test::TempFolder folder;
  late_input.Reset(open(folder.Write("in", "text").c_str(), O_RDONLY | O_CLOEXEC));
  Start(late_input.get(), 1);
  feed.reset();
  EXPECT_TRUE(Ends(0));
}

}  // namespace
}  // namespace rankrun::agent
