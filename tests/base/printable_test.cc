#include "base/printable.h"

#include <gtest/gtest.h>

namespace rankrun {
namespace {

TEST(PrintableTest, TextStays) {
  EXPECT_EQ(Escaped(""), "");
  EXPECT_EQ(Escaped("a key/with words"), "a key/with words");
  EXPECT_EQ(Escaped("päth 漢字 \U0001F600"), "päth 漢字 \U0001F600");
}

TEST(PrintableTest, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(Escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(Escaped(std::string("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(Escaped("\u0085\u009b"), "\\xc2\\x85\\xc2\\x9b");
}

TEST(PrintableTest, ABackslashIsTwoSoThatNothingLooksLikeAnEscape) {
  EXPECT_EQ(Escaped("\\n"), "\\\\n");
  EXPECT_EQ(OneLine("\\n"), "\\n");
  EXPECT_EQ(OneLine("a\nb"), "a\\nb");
}

TEST(PrintableTest, ALineKeepsItsTabsAndIsCutIfItIsTooWide) {
  EXPECT_EQ(OneLine("a\tb\r"), "a\tb\\r");
  EXPECT_EQ(OneLine("a\\tb", 4), "a\\tb");
  EXPECT_EQ(OneLine("a\tbcd", 4), "a...");
}

TEST(PrintableTest, DirectionMarksAreSpelledOut) {
  EXPECT_EQ(Escaped("\u202e"), "\\xe2\\x80\\xae");
  EXPECT_EQ(Escaped("\u2066\u2069\u200f\u2028"),
            "\\xe2\\x81\\xa6\\xe2\\x81\\xa9\\xe2\\x80\\x8f\\xe2\\x80\\xa8");
}

TEST(PrintableTest, InvalidUtf8IsSpelledOut) {
  for (const char* bad : {"\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf",
                          "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xc3(", "\xe2\x28\xa1"}) {
    EXPECT_FALSE(IsUtf8(bad)) << Hex(bad);
    EXPECT_TRUE(Escaped(bad).starts_with("\\x")) << Hex(bad);
  }
  EXPECT_EQ(Escaped("\xff\xc3\xa9\xc3"), "\\xff\u00e9\\xc3");
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("\u00e9\u20ac\U0010ffff"));
  EXPECT_TRUE(IsUtf8(std::string("\0", 1)));
}

TEST(PrintableTest, WideTextIsCutBetweenCharacters) {
  EXPECT_EQ(EscapedAndCut("0123456789", 10), "0123456789");
  EXPECT_EQ(EscapedAndCut("0123456789a", 10), "0123456...");
  EXPECT_EQ(EscapedAndCut("ééééééééééé", 10), "ééééééé...");
  EXPECT_EQ(EscapedAndCut("ab\x01\x02\x03", 10), "ab\\x01...");
  EXPECT_EQ(EscapedAndCut("ab\x01\x02", 10), "ab\\x01\\x02");
  EXPECT_EQ(EscapedAndCut("abcde\x01\x02", 10), "abcde...");
  EXPECT_EQ(EscapedAndCut(std::string(100'000'000, 'x'), 5), "xx...");
}

TEST(PrintableTest, HexHasTwoDigitsPerByte) {
  EXPECT_EQ(Hex(std::string("\0\xff\x10", 3)), "00ff10");
  EXPECT_EQ(Hex(""), "");
}

TEST(PrintableTest, LinesKeepTheirEnds) {
  EXPECT_EQ(Lines("a\r\nb\n\tc\rd\\"), "a\nb\n\tc\nd\\");
  EXPECT_EQ(Lines("\x1b[2J\xff\xe2\x80\xae"), "\\x1b[2J\\xff\\xe2\\x80\\xae");
  EXPECT_EQ(Lines("\r\n"), "\n");
  EXPECT_EQ(Lines(""), "");
}

TEST(PrintableTest, TheEndOfAPieceMayBelongToTheNext) {
  for (const char* whole :
       {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff\x80\x80\x80", "\r\n"}) {
    EXPECT_EQ(IncompleteEnd(whole), 0u) << whole;
  }
  EXPECT_EQ(IncompleteEnd("a\r"), 1u);
  EXPECT_EQ(IncompleteEnd("a\xc3"), 1u);
  EXPECT_EQ(IncompleteEnd("a\xe2\x82"), 2u);
  EXPECT_EQ(IncompleteEnd("\xf0\x9f\x98"), 3u);
}

}  // namespace
}  // namespace rankrun
