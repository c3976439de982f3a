#include "launcher/flags/marked_text.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

TEST(MarkedTextTest, PlainTextHasNoMarks) {
  EXPECT_EQ(PlainText("With `--bind numa`, _MIN_:_MAX_ and \"_N_\"."),
            "With --bind numa, MIN:MAX and \"N\".");
}

TEST(MarkedTextTest, UnderscoresInNamesAreNoMarks) {
  for (const char* text : {"TORCHELASTIC_RUN_ID and ROLE_NAME", "RANKRUN_*", "a _ b _ c",
                           "_lower_ case", "an _Open mark", "a ` quote"}) {
    EXPECT_EQ(PlainText(text), text);
    EXPECT_EQ(ManLine(text), text);
  }
  EXPECT_EQ(PlainText("`${local_rank}` is _RANK_ID"), "${local_rank} is RANKID")
      << "the first closing mark counts";
}

TEST(MarkedTextTest, LiteralsAreBoldAndValuesItalic) {
  EXPECT_EQ(ManLine("Set `--log-dir` to _FOLDER_."),
            "Set \\fB\\-\\-log\\-dir\\fR to \\fIFOLDER\\fR.");
}

TEST(MarkedTextTest, ADashIsAHyphenExceptInALiteral) {
  EXPECT_EQ(ManLine("well-known `-x`"), "well-known \\fB\\-x\\fR");
}

TEST(MarkedTextTest, ABackslashIsEscaped) { EXPECT_EQ(ManLine("`\\n` \\"), "\\fB\\en\\fR \\e"); }

TEST(MarkedTextTest, ParagraphsAreWrappedAndSeparated) {
  std::string words;
  for (int i = 0; i < 20; ++i) words += "word ";
  words += "end";
  EXPECT_EQ(ManParagraphs(words + "\n\nNext.", ".IP"),
            "word word word word word word word word word word word word word word word word\n"
            "word word word word end\n"
            ".IP\n"
            "Next.\n");
  EXPECT_EQ(ManParagraphs("", ".IP"), "");
}

TEST(MarkedTextTest, NoLineOfTextIsARequest) {
  EXPECT_EQ(ManParagraphs(".hidden file", ".PP"), "\\&.hidden file\n");
  EXPECT_EQ(ManParagraphs("'quoted'", ".PP"), "\\&'quoted'\n");
}

}  // namespace
}  // namespace rankrun::launcher
