#include "agent/output/output_stream.h"

#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun::agent {
namespace {

// Records its input.
struct FakeSink : OutputSink {
  struct State {
    std::string text;
    bool full = false;
    int finished = 0;
  };
  explicit FakeSink(State& state_of_test) : state(state_of_test) {}
  void Write(std::string_view bytes) override { state.text += bytes; }
  bool full() const override { return state.full; }
  void Finish() override { state.finished += 1; }
  State& state;
};

struct OutputStreamTest : testing::TestWithParam<bool> {
  // Starts the stream and returns the worker's end.
  Fd Run() {
    OutputStream::Options options{.terminal = GetParam(), .pipe_bytes = 1 << 20};
    options.sinks.push_back(std::make_unique<FakeSink>(first));
    options.sinks.push_back(std::make_unique<FakeSink>(second));
    stream.emplace(loop, std::move(options));
    auto ready = stream->Prepare();
    EXPECT_TRUE(ready) << ready.error().message;
    Fd worker(fcntl(stream->worker_end(), F_DUPFD_CLOEXEC, 0));
    stream->Start();
    return worker;
  }
  void Print(const Fd& worker, std::string_view text) {
    ASSERT_EQ(write(worker.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool Comes(const std::string& text) {
    return loop.RunUntil([&] { return first.text == text; }, test::kLong);
  }
  // Runs the loop until the stream has seen all that was printed so far. A
  // terminal delivers bytes in order, but a little later than they were
  // written. Once a second terminal has delivered its bytes, the earlier ones
  // have arrived, too.
  void RunUntilPrintedIsSeen() {
    FakeSink::State state;
    OutputStream::Options options{.terminal = GetParam()};
    options.sinks.push_back(std::make_unique<FakeSink>(state));
    OutputStream other(loop, std::move(options));
    ASSERT_TRUE(other.Prepare());
    Fd worker(fcntl(other.worker_end(), F_DUPFD_CLOEXEC, 0));
    other.Start();
    Print(worker, "behind");
    EXPECT_TRUE(loop.RunUntil([&] { return state.text == "behind"; }, test::kLong));
    test::RunReadyCallbacks(loop);
    other.Finish();
  }

  Loop loop;
  FakeSink::State first, second;
  std::optional<OutputStream> stream;
};

INSTANTIATE_TEST_SUITE_P(PipeAndTerminal, OutputStreamTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Terminal" : "Pipe"; });

TEST_P(OutputStreamTest, EachSinkGetsEveryByteUnchanged) {
  Fd worker = Run();
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  all += "\r\n\n\r\x03\x04\x1a";
  Print(worker, all);
  EXPECT_TRUE(Comes(all)) << first.text.size();
  EXPECT_EQ(second.text, all);
  EXPECT_EQ(stream->Tail(), all);
}

TEST_P(OutputStreamTest, OutputBeforeTheEndIsNotLost) {
  Fd worker = Run();
  std::string text(60'000, 'x');
  size_t count = 0;
  fcntl(worker.get(), F_SETFL, O_NONBLOCK);
  for (ssize_t n; (n = write(worker.get(), text.data(), text.size())) > 0;) {
    count += static_cast<size_t>(n);
    if (GetParam()) break;  // a terminal accepts this much at once
  }
  worker.Reset();
  stream->Finish();
  EXPECT_EQ(first.text.size(), count);
  EXPECT_EQ(first.finished, 1);
  EXPECT_EQ(second.finished, 1);
}

TEST_P(OutputStreamTest, TheEndOfAllWritersIsNoError) {
  Fd worker = Run();
  Print(worker, "last");
  worker.Reset();
  EXPECT_TRUE(Comes("last"));
  test::RunReadyCallbacks(loop);
  stream->CatchUp();
  stream->Resume();
  stream->Finish();
  EXPECT_EQ(first.text, "last");
}

TEST_P(OutputStreamTest, AFullSinkHoldsBackTheWriterUntilItHasRoom) {
  Fd worker = Run();
  second.full = true;
  Print(worker, "held");
  RunUntilPrintedIsSeen();
  stream->CatchUp();
  stream->Resume();
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(first.text, "");
  second.full = false;
  stream->Resume();
  EXPECT_TRUE(Comes("held"));
}

TEST_P(OutputStreamTest, TheEndDeliversOutputThatAFullSinkHeldBack) {
  Fd worker = Run();
  first.full = true;
  Print(worker, "held");
  RunUntilPrintedIsSeen();
  stream->Finish();
  EXPECT_EQ(first.text, "held");
}

TEST_P(OutputStreamTest, AStreamThatNeverStartedEndsQuietly) {
  OutputStream::Options options{.terminal = GetParam()};
  options.sinks.push_back(std::make_unique<FakeSink>(first));
  OutputStream quiet(loop, std::move(options));
  ASSERT_TRUE(quiet.Prepare());
  ASSERT_TRUE(quiet.Prepare()) << "again, after something else had failed";
  quiet.GiveUp();
  quiet.CatchUp();
  quiet.Resume();
  quiet.Finish();
  EXPECT_EQ(first.finished, 1);
}

// A process that keeps writing must not delay the end.
TEST_P(OutputStreamTest, AnEndlessWriterHoldsNothingUp) {
  Fd worker = Run();
  pid_t pid = test::Fork([&] {
    std::string text(4096, 'y');
    for (;;) {
      if (write(worker.get(), text.data(), text.size()) < 0) return 1;
    }
  });
  EXPECT_TRUE(loop.RunUntil([this] { return first.text.size() > 1'000'000; }, test::kLong));
  stream->Finish();
  kill(pid, SIGKILL);
  test::WaitForExit(pid);
}

TEST(OutputChannelTest, ATerminalIsRawAndNobodysControllingTerminal) {
  auto channel = OutputChannel::OpenTerminal(STDIN_FILENO);
  ASSERT_TRUE(channel) << channel.error().message;
  int worker = channel->worker_end.get();
  EXPECT_EQ(isatty(worker), 1);
  termios settings;
  ASSERT_EQ(tcgetattr(worker, &settings), 0);
  EXPECT_EQ(settings.c_oflag & OPOST, 0u);
  EXPECT_EQ(settings.c_lflag & (ECHO | ISIG | ICANON), 0u);
  EXPECT_EQ(tcgetsid(worker), -1);
}

TEST(OutputChannelTest, ATerminalIsAsLargeAsTheOneItIsMadeAfter) {
  auto like = OutputChannel::OpenTerminal(STDIN_FILENO);
  ASSERT_TRUE(like);
  winsize size{.ws_row = 33, .ws_col = 77, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(like->worker_end.get(), TIOCSWINSZ, &size), 0);
  auto channel = OutputChannel::OpenTerminal(like->worker_end.get());
  ASSERT_TRUE(channel);
  winsize found{};
  ASSERT_EQ(ioctl(channel->worker_end.get(), TIOCGWINSZ, &found), 0);
  EXPECT_EQ(found.ws_row, 33);
  EXPECT_EQ(found.ws_col, 77);
}

TEST(OutputChannelTest, OurEndOfAPipeDoesNotBlockTheWorkersDoes) {
  auto channel = OutputChannel::OpenPipe(1 << 20);
  ASSERT_TRUE(channel);
  EXPECT_NE(fcntl(channel->read_end.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(channel->worker_end.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace rankrun::agent
