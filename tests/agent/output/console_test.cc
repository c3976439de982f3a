#include "agent/output/console.h"

#include <gmock/gmock.h>

#include "agent/output/console_sink.h"
#include "base/uv/uv_loop.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun::agent {
namespace {

using testing::HasSubstr;

constexpr auto kOut = Console::kStdout;
constexpr auto kErr = Console::kStderr;

struct ConsoleTest : testing::Test {
  ConsoleTest() { signal(SIGPIPE, SIG_IGN); }

  void Open(int stdout_fd, int stderr_fd) {
    console.emplace(loop, stdout_fd, stderr_fd, [this] { progress += 1; });
  }
  void OpenOneScreen() {
    screen.Reset(open(folder.Path("screen").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    Open(screen.get(), screen.get());
  }
  std::string Shown() {
    EXPECT_TRUE(loop.RunUntil([this] { return console->queued_bytes() == 0; }, test::kLong));
    return test::ReadWholeFile(folder.Path("screen"));
  }
  std::unique_ptr<ConsoleSink> Sink(ConsoleSink::Options options) {
    return std::make_unique<ConsoleSink>(loop, *console, std::move(options));
  }

  test::TempFolder folder;
  Loop loop;
  Fd screen;
  std::optional<Console> console;
  int progress = 0;
};

TEST_F(ConsoleTest, OnlyTheSinkOfTheShownRankHasRoom) {
  OpenOneScreen();
  auto zero = Sink({.writer = 0, .local_rank = 0});
  auto one = Sink({.writer = 2, .local_rank = 1});
  console->HoldAllBut(1);
  EXPECT_TRUE(zero->full());
  EXPECT_FALSE(one->full());
  console->HoldAllBut({});
  EXPECT_FALSE(zero->full());
}

TEST_F(ConsoleTest, WholeLinesPassAsTheyAre) {
  OpenOneScreen();
  console->Write(kOut, {.writer = 0, .bytes = "a\n"});
  console->Write(kErr, {.writer = 1, .bytes = "b\n"});
  console->Say("rankrun: c\n");
  EXPECT_EQ(Shown(), "a\nb\nrankrun: c\n");
  EXPECT_GT(progress, 0);
}

TEST_F(ConsoleTest, AnOpenLineIsEndedBeforeAnotherWritersOnly) {
  OpenOneScreen();
  console->Write(kOut, {.writer = 0, .bytes = "half"});
  console->Write(kOut, {.writer = 0, .bytes = " and half, "});
  console->Write(kErr, {.writer = 1, .bytes = "other\n"});
  console->Write(kOut, {.writer = 0, .bytes = "last"});
  console->Say("rankrun: the end\n");
  EXPECT_EQ(Shown(), "half and half, \nother\nlast\nrankrun: the end\n");
}

TEST_F(ConsoleTest, OutputsThatLeadElsewhereHaveTheirOwnLines) {
  test::Pipe out = test::MakePipe();
  test::Pipe err = test::MakePipe();
  Open(out.write_end.get(), err.write_end.get());
  console->Write(kOut, {.writer = 0, .bytes = "half"});
  console->Write(kErr, {.writer = 1, .bytes = "other\n"});
  console->Write(kOut, {.writer = 0, .bytes = " done\n"});
  ASSERT_TRUE(loop.RunUntil([this] { return console->queued_bytes() == 0; }, test::kLong));
  console.reset();
  out.write_end.Reset();
  err.write_end.Reset();
  EXPECT_EQ(test::ReadToEnd(out.read_end.get()), "half done\n");
  EXPECT_EQ(test::ReadToEnd(err.read_end.get()), "other\n");
}

TEST_F(ConsoleTest, BarsReplaceOneAnotherAndLinesDoNotSpoilThem) {
  OpenOneScreen();
  console->Write(kErr, {.writer = 0, .bytes = "10%\r", .prefix = "[0] "});
  console->Write(kErr, {.writer = 1, .bytes = "20%\r", .prefix = "[1] "});
  console->Write(kErr, {.writer = 0, .bytes = "line\n", .prefix = "[0] "});
  EXPECT_EQ(Shown(), "[0] 10%\r[1] 20%\r\n[0] line\n");
}

TEST_F(ConsoleTest, AnEndOfTwoBytesMayComeInTwoParts) {
  OpenOneScreen();
  auto first = Sink({.channel = kOut, .writer = 0, .prefix = "[0] "});
  auto second = Sink({.channel = kOut, .writer = 1, .prefix = "[1] "});
  first->Write("one\r");
  first->Write("\ntwo\r");
  second->Write("other\n");
  first->Write("\nthree\n");
  EXPECT_EQ(Shown(), "[0] one\r\n[0] two\r\n[1] other\n[0] three\n");
}

TEST_F(ConsoleTest, AFailureOfStandardOutputIsReportedOnce) {
  test::Pipe out = test::MakePipe();
  out.read_end.Reset();
  screen.Reset(open(folder.Path("screen").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  Open(out.write_end.get(), screen.get());
  for (int i = 0; i < 3; ++i) {
    console->Write(kOut, {.writer = 0, .bytes = "lost\n"});
    Shown();
  }
  EXPECT_EQ(Shown(),
            "rankrun: write to standard output: Broken pipe; worker output is lost from here "
            "on\n");
}

TEST_F(ConsoleTest, AFullDiskBehindStandardOutputIsReportedOnce) {
  Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  screen.Reset(open(folder.Path("screen").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  Open(full.get(), screen.get());
  for (int i = 0; i < 3; ++i) {
    console->Write(kOut, {.writer = 0, .bytes = "lost\n"});
    Shown();
  }
  EXPECT_EQ(Shown(),
            "rankrun: write to standard output: No space left on device; worker output is "
            "lost until writing works again\n");
}

TEST_F(ConsoleTest, AStuckReaderMakesItFullAndLosesNothing) {
  test::Pipe out = test::MakePipe();
  Open(out.write_end.get(), STDERR_FILENO);
  std::string block(300'000, 'x');
  size_t written = 0;
  while (!console->full(kOut)) {
    console->Write(kOut, {.writer = 0, .bytes = block});
    written += block.size();
    test::RunReadyCallbacks(loop);
  }
  EXPECT_FALSE(console->full(kErr));
  EXPECT_LE(written, Console::kMaxQueuedBytes + 3 * block.size());
  std::thread reader([&] {
    std::string all = test::ReadToEnd(out.read_end.get());
    EXPECT_EQ(all.size(), written);
  });
  EXPECT_TRUE(loop.RunUntil([this] { return console->queued_bytes() == 0; }, test::kLong));
  console.reset();
  out.write_end.Reset();
  reader.join();
}

TEST_F(ConsoleTest, ASingleWorkerIsShownAtOnce) {
  OpenOneScreen();
  auto sink = Sink({.channel = kOut, .alone = true});
  sink->Write("name? ");
  EXPECT_EQ(Shown(), "name? ");
  sink->Write("yes\n");
  EXPECT_EQ(Shown(), "name? yes\n");
}

TEST_F(ConsoleTest, OneOfManyIsShownInLinesAndItsRestAtTheEnd) {
  OpenOneScreen();
  auto sink = Sink({.channel = kOut, .prefix = "[0] "});
  sink->Write("a\nhalf");
  EXPECT_EQ(Shown(), "[0] a\n");
  sink->Finish();
  EXPECT_EQ(Shown(), "[0] a\n[0] half");
}

TEST_F(ConsoleTest, OneOfManyThatAsksIsShownAfterAMoment) {
  OpenOneScreen();
  auto sink = Sink({.channel = kOut, .prefix = "[0] ", .asks = true});
  sink->Write("(Pdb) ");
  EXPECT_EQ(Shown(), "");
  auto is_shown = [this] { return test::ReadWholeFile(folder.Path("screen")) == "[0] (Pdb) "; };
  EXPECT_TRUE(loop.RunUntil(is_shown, test::kLong));
  sink->Write("next\n");
  EXPECT_EQ(Shown(), "[0] (Pdb) next\n");
}

// Lines of one writer, and parts of very long lines, stay together.
TEST_F(ConsoleTest, LongAndShortLinesOfManyAreNeverInterleaved) {
  OpenOneScreen();
  std::vector<std::unique_ptr<ConsoleSink>> sinks;
  for (int writer = 0; writer < 3; ++writer) {
    sinks.push_back(Sink({.channel = kOut, .writer = writer}));
  }
  for (int round = 0; round < 300; ++round) {
    for (size_t writer = 0; writer < 3; ++writer) {
      sinks[writer]->Write(std::string(1000, static_cast<char>('a' + writer)));
      if (writer == 0) sinks[writer]->Write("\n");
    }
  }
  for (auto& sink : sinks) sink->Finish();
  std::string shown = Shown();
  size_t letters = 0;
  for (size_t begin = 0; begin < shown.size();) {
    size_t end = std::min(shown.find('\n', begin), shown.size());
    ASSERT_EQ(shown.substr(begin, end - begin).find_first_not_of(shown[begin]), std::string::npos);
    letters += end - begin;
    begin = end + 1;
  }
  EXPECT_EQ(letters, 900'000u);
}

}  // namespace
}  // namespace rankrun::agent
