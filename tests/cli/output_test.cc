#include "cli/output.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>

#include "tests/base/support.h"

namespace rankrun::cli {
namespace {

struct SafeStreamTest : testing::Test {
  SafeStreamTest() {
    int master = Fd::kNone;
    int slave = Fd::kNone;
    termios raw{};
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    EXPECT_EQ(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    EXPECT_EQ(tcsetattr(slave, TCSANOW, &raw), 0);
    screen.Reset(master);
    terminal.Reset(slave);
  }
  std::string Screen() {
    terminal.Reset();
    return test::ReadToEnd(screen.get());
  }

  Fd screen;
  Fd terminal;
};

TEST_F(SafeStreamTest, ATerminalIsNotControlled) {
  {
    SafeStream stream(terminal.get());
    ASSERT_TRUE(
        stream.Write("\x1b]0;title\x07"
                     "a\tb\r\nc\r"));
    ASSERT_TRUE(stream.Write("\nhalf: \xc3"));
    ASSERT_TRUE(stream.Write("\xa4, \xff end \xe2\x82"));
  }
  EXPECT_EQ(Screen(),
            "\\x1b]0;title\\x07"
            "a\tb\nc\nhalf: \xc3\xa4, \\xff end \\xe2\\x82");
}

TEST_F(SafeStreamTest, APipeGetsTheBytes) {
  test::Pipe pipe = test::MakePipe();
  {
    SafeStream stream(pipe.write_end.get());
    ASSERT_TRUE(stream.Write("\x1b[1m\r\n\xff"));
  }
  pipe.write_end.Reset();
  EXPECT_EQ(test::ReadToEnd(pipe.read_end.get()), "\x1b[1m\r\n\xff");
}

}  // namespace
}  // namespace rankrun::cli
