#include "agent/worker/save_fifo.h"

#include <gtest/gtest.h>
#include <sys/fsuid.h>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

TEST(SaveLineTest, HasARankAndAState) {
  auto saving = ParseSaveLine("12 saving", 8, 16);
  ASSERT_TRUE(saving);
  EXPECT_EQ(saving->local_rank, 4);
  EXPECT_TRUE(saving->saving);
  auto saved = ParseSaveLine("0 saved", 0, 16);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->local_rank, 0);
  EXPECT_FALSE(saved->saving);
}

TEST(SaveLineTest, AnyOtherLineIsIgnored) {
  for (const char* line :
       {"", "saving", "0", "0 ", "0saving", "0  saving", "0 saving ", "-1 saving", "2 saving",
        "99999999999 saving", "0 SAVING", " 0 saving", "+0 saving"}) {
    EXPECT_FALSE(ParseSaveLine(line, 0, 2)) << line;
  }
}

TEST(SaveLineTest, ARankOfAnotherNodeIsIgnored) {
  for (const char* line : {"0 saving", "3 saving", "6 saving"}) {
    EXPECT_FALSE(ParseSaveLine(line, 4, 2)) << line;
  }
}

TEST(StepLineTest, HasARankAndAStep) {
  const TimePoint now{std::chrono::seconds(5)};
  auto step = ParseStepLine("12 step 120", 8, 16, now);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->local_rank, 4);
  EXPECT_EQ(step->step, 120);
  EXPECT_EQ(step->at, now);
}

TEST(StepLineTest, AnyOtherLineIsIgnored) {
  for (const char* line : {"", "0 step", "0 step ", "0 step x", "0 step -1", "0 step 1 ",
                           "0 step 99999999999999999999", "2 step 1", "step 1", "0 saving"}) {
    EXPECT_FALSE(ParseStepLine(line, 0, 2, {})) << line;
  }
}

struct LineFifoTest : testing::Test {
  std::unique_ptr<LineFifo> Make() {
    auto fifo = LineFifo::Create(loop, path, [this](std::string_view line) {
      lines.emplace_back(line);
      if (lines.back() == "end") loop.Stop();
    });
    EXPECT_TRUE(fifo);
    return fifo ? std::move(*fifo) : nullptr;
  }
  // Writes like a client of torchrun: open, write, close.
  void Write(const std::string& text) const {
    Fd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK));
    ASSERT_TRUE(fd);
    EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::vector<std::string> Read() {
    Write("end\n");
    loop.Run();
    lines.pop_back();
    return std::exchange(lines, {});
  }

  Loop loop;
  test::TempFolder folder;
  std::string path = folder.Path("fifo");
  std::vector<std::string> lines;
};

TEST_F(LineFifoTest, LinesOfManyWritersArrive) {
  auto fifo = Make();
  Write("a\nb\n");
  Write("c\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"a", "b", "c"}));
  Write("\nhalf");
  Write(" line\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"", "half line"}));
}

TEST_F(LineFifoTest, ALineThatIsTooLongIsDroppedAndOnlyThat) {
  auto fifo = Make();
  Write("a\n" + std::string(LineFifo::kMaxLine, 'x') + "\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"a", std::string(LineFifo::kMaxLine, 'x')}));
  Write(std::string(3 * LineFifo::kMaxLine, 'y'));
  Write("y\nb\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"b"}));
  Write(std::string(LineFifo::kMaxLine + 1, 'z') + "\nc\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"c"}));
}

TEST_F(LineFifoTest, IsRemovedAtItsEndAndReplacesAnotherPipe) {
  {
    auto fifo = Make();
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto fifo = Make();
  Write("a\n");
  EXPECT_EQ(Read(), (std::vector<std::string>{"a"}));
}

TEST_F(LineFifoTest, DoesNotReplaceAFile) {
  folder.Write("fifo", "precious");
  auto fifo = LineFifo::Create(loop, path, [](std::string_view) {});
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(test::ReadWholeFile(path), "precious");
}

// Another owner stands for a pipe that another user put in its place meanwhile.
TEST_F(LineFifoTest, APipeOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  setfsuid(kNobody);  // of this thread; geteuid() remains 0
  auto fifo = LineFifo::Create(loop, path, [](std::string_view) {});
  setfsuid(0);
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().message,
            "create the named pipe " + path + ": another file is in its place");
}

TEST_F(LineFifoTest, CannotBeMadeWhereThereIsNoFolder) {
  auto fifo = LineFifo::Create(loop, folder.Path("none/fifo"), [](std::string_view) {});
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rankrun::agent
