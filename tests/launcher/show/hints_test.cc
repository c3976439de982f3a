#include "launcher/show/hints.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

std::string HintForError(const std::string& standard_error, bool reads_terminal = false) {
  agent::WorkerRecord cause;
  cause.reads_terminal = reads_terminal;
  cause.global_rank = 5;
  cause.local_rank = 1;
  cause.exit = ProcessExit{.signaled = false, .value = 1};
  cause.stderr_tail = standard_error;
  return HintFor(cause);
}

TEST(HintsTest, AnEndOfTheInputNamesTheFlagThatConnectsIt) {
  const std::string hint =
      "it read the end of its standard input; --stdin 1 gives it that of rankrun";
  EXPECT_EQ(HintForError("Traceback (most recent call last):\n"
                         "  File \"train.py\", line 3, in <module>\n"
                         "    name = input(\"name? \")\n"
                         "EOFError: EOF when reading a line\n"),
            hint);
  EXPECT_EQ(HintForError("Traceback (most recent call last):\n"
                         "  File \"/usr/lib/python3.11/bdb.py\", line 115, in dispatch_line\n"
                         "    if self.quitting: raise BdbQuit\n"
                         "bdb.BdbQuit\n"),
            hint);
  EXPECT_EQ(HintForError("bdb.BdbQuit\n", true), "") << "its user typed q";
}

TEST(HintsTest, AnUnknownLocalRankNamesTheCommandThatWorks) {
  EXPECT_EQ(HintForError("usage: train.py [-h] [--local_rank LOCAL_RANK]\n"
                         "train.py: error: unrecognized arguments: --local-rank=1\n"),
            "the program does not know --local-rank, which rankrun-launch adds; this works: "
            "rankrun FLAGS PROGRAM '--local_rank=${local_rank}'");
}

TEST(HintsTest, OtherErrorsHaveNone) {
  EXPECT_EQ(HintForError("Traceback (most recent call last):\nEOFError: Ran out of input\n"), "");
  EXPECT_EQ(HintForError("train.py: error: unrecognized arguments: --lr=1\n"), "");
  EXPECT_EQ(HintForError(""), "");
}

}  // namespace
}  // namespace rankrun::launcher
