#include "agent/worker/breakpoint_pipe.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using Kind = BreakpointNotice::Kind;

TEST(BreakpointLineTest, HasAKindARankAndAProcess) {
  EXPECT_EQ(ParseBreakpointLine("stopped 12 4711 3"),
            (BreakpointNotice{Kind::kStopped, 12, 4711, 3}));
  EXPECT_EQ(ParseBreakpointLine("passed 0 1 1"), (BreakpointNotice{Kind::kPassed, 0, 1, 1}));
  EXPECT_EQ(ParseBreakpointLine("returned 0 1 2"), (BreakpointNotice{Kind::kReturned, 0, 1, 2}));
  EXPECT_EQ(ParseBreakpointLine("borrows 2 4711 3 9"),
            (BreakpointNotice{Kind::kBorrows, 2, 4711, 3, 9}));
}

TEST(BreakpointLineTest, AnyOtherLineIsIgnored) {
  for (const char* line : {"",
                           "stopped",
                           "stopped ",
                           "stopped 1",
                           "stopped 1 ",
                           "stopped 1 5",
                           "stopped 1 5 ",
                           "stopped 1 0 1",
                           "stopped -1 5 1",
                           "stopped 1 5 0",
                           "stopped 1 5 2000000",
                           "stopped 1 5 1 ",
                           "stopped  1 5 1",
                           "stops 1 5 1",
                           "stopped 1 99999999999 1",
                           " passed 1 5 1",
                           "borrows 1 5 1",
                           "borrows 1 5 1 ",
                           "borrows 1 5 1 -1",
                           "borrows 1 5 1 9 "}) {
    EXPECT_FALSE(ParseBreakpointLine(line)) << line;
  }
}

TEST(BreakpointPipeTest, AnotherProcessOpensItByItsPath) {
  Loop loop;
  std::vector<BreakpointNotice> notices;
  auto pipe = BreakpointPipe::Create(loop, [&](const auto& notice) { notices.push_back(notice); });
  ASSERT_TRUE(pipe);
  const pid_t writer = fork();
  if (writer == 0) {
    Fd fd(open((*pipe)->path().c_str(), O_WRONLY | O_NONBLOCK));
    const std::string_view lines = "nonsense\nstopped 2 77 1\npassed 2 77 1\n";
    _exit(write(fd.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()) ? 0
                                                                                            : 1);
  }
  EXPECT_TRUE(loop.RunUntil([&] { return notices.size() == 2; }, test::kLong));
  EXPECT_EQ(notices[0], (BreakpointNotice{Kind::kStopped, 2, 77, 1}));
  EXPECT_EQ(notices[1], (BreakpointNotice{Kind::kPassed, 2, 77, 1}));
  waitpid(writer, nullptr, 0);
}

}  // namespace
}  // namespace rankrun::agent
