#include "agent/report/exit_noise.h"

#include <gmock/gmock.h>

#include <string>

#include "agent/report/last_error.h"

namespace rankrun::agent {
namespace {

using testing::ElementsAre;

const std::string kError =
    "epoch 3\nTraceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n"
    "ValueError: no such shard: 17\n";
const std::string kLeaked =
    "/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There "
    "appear to be 12 leaked shared_memory objects to clean up at shutdown\n"
    "  warnings.warn('resource_tracker: There appear to be %d '\n";
const std::string kDestructor =
    "Exception ignored in: <function Loader.__del__ at 0x7fc79739c4a0>\n"
    "Traceback (most recent call last):\n  File \"loader.py\", line 3, in __del__\n"
    "AttributeError: 'Loader' object has no attribute 'closed'\n";
const std::string kNotDestroyed =
    "[rank0]:[W1128 20:11:59.3 ProcessGroupNCCL.cpp:1538] Warning: destroy_process_group() was not "
    "called before program exit\n";

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ExitNoiseTest, AnExceptionStaysTheErrorWhateverPythonWritesAtItsEnd) {
  for (const std::string& noise : {kLeaked, kDestructor, kNotDestroyed}) {
    const LastError error = FindLastError(kError + Repeated(noise, 30));
    EXPECT_EQ(error.text, "ValueError: no such shard: 17\n") << noise;
    EXPECT_TRUE(EndedWithException(error)) << noise;
    EXPECT_EQ(error.lines_after, 0) << noise;
  }
}

TEST(ExitNoiseTest, AReaderSeesTheExceptionAndNotTheNoise) {
  const ShownLines shown =
      LastLinesWithException(kError + kDestructor + Repeated(kLeaked, 12) + kNotDestroyed, 20);
  EXPECT_THAT(shown.lines, ElementsAre("epoch 3", "Traceback (most recent call last):",
                                       "  File \"train.py\", line 9, in <module>",
                                       "ValueError: no such shard: 17"));
  EXPECT_EQ(shown.left_out, 4U + 24 + 1);
}

TEST(ExitNoiseTest, OtherLinesAfterAnExceptionLeaveItInSight) {
  const ShownLines shown = LastLinesWithException(kError + Repeated("wandb: loss 0.3\n", 18), 20);
  EXPECT_EQ(shown.lines.size(), 14U);
  EXPECT_EQ(shown.lines[3], "ValueError: no such shard: 17");
  EXPECT_EQ(shown.left_out, 8U);
}

TEST(ExitNoiseTest, ALongMessageIsShownWhole) {
  const std::string keys = "\tMissing key(s): \"a.weight\"\n\tsize mismatch for b: (3) and (4)\n";
  const ShownLines shown = LastLinesWithException(kError + keys + kLeaked, 20);
  EXPECT_EQ(shown.lines.back(), "\tsize mismatch for b: (3) and (4)");
  EXPECT_EQ(shown.left_out, 2U);
}

TEST(ExitNoiseTest, AProgramThatGoesOnHasCaughtTheException) {
  const ShownLines shown = LastLinesWithException(kError + Repeated("step\n", 21), 20);
  EXPECT_EQ(shown.lines.size(), 20U);
  EXPECT_EQ(shown.lines[0], "step");
  EXPECT_EQ(shown.left_out, 0U);
}

TEST(ExitNoiseTest, WithoutATracebackTheLastLinesMayBeTheError) {
  for (const std::string& noise : {kLeaked, kDestructor, kNotDestroyed}) {
    EXPECT_EQ(LastLinesWithException("step 3\n" + noise, 20).left_out, 0U) << noise;
  }
  EXPECT_EQ(FindLastError("step 3\n" + kDestructor).text,
            "AttributeError: 'Loader' object has no attribute 'closed'\n");
}

TEST(ExitNoiseTest, WarningsBeforeTheExceptionStay) {
  const ShownLines shown = LastLinesWithException(kLeaked + kError, 20);
  EXPECT_EQ(shown.left_out, 0U);
  EXPECT_EQ(shown.lines.size(), 6U);
}

TEST(ExitNoiseTest, AnExceptionThatEndsInWarningIsAnError) {
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 3\nUserWarning: too few steps\n";
  EXPECT_EQ(LastLinesWithException(error, 20).left_out, 0U);
  EXPECT_EQ(FindLastError(error).text, "UserWarning: too few steps\n");
}

TEST(ExitNoiseTest, APrefixOfTheRankHidesNoNoise) {
  std::string prefixed =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\"\n"
      "[rank1]: ValueError: no\n" +
      kNotDestroyed + kNotDestroyed;
  EXPECT_EQ(LastLinesWithException(prefixed, 20).left_out, 2U);
}

}  // namespace
}  // namespace rankrun::agent
