#include "agent/output/line_prefix.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

const PrefixValues kPlace{
    .role_name = "trainer", .local_rank = 3, .global_rank = 11, .host_name = "n1"};

std::string Prefixed(std::string_view text, bool at_line_start = true) {
  std::string out;
  AppendPrefixed(text, "[3] ", at_line_start, out);
  return out;
}

TEST(ExpandPrefixTest, KnownNamesBecomeTheirValues) {
  EXPECT_EQ(ExpandPrefix("${hostname}:${rank} $hostname", kPlace), "n1:11 n1");
  EXPECT_EQ(ExpandPrefix("[${role_name}${local_rank}]:", kPlace), "[trainer3]:");
  EXPECT_EQ(ExpandPrefix("<$rank>$local_rank$role_name", kPlace), "<11>3trainer");
  EXPECT_EQ(ExpandPrefix("", kPlace), "");
  EXPECT_EQ(ExpandPrefix("plain", kPlace), "plain");
}

// Expected values come from Python 3.11's string.Template(...).safe_substitute.
TEST(ExpandPrefixTest, AnythingElseStaysAsItIs) {
  for (const char* text :
       {"${other}", "$other", "${rank", "${}", "$", "a$", "$ rank", "$1", "${rank }", "$rank_"}) {
    EXPECT_EQ(ExpandPrefix(text, kPlace), text);
  }
  EXPECT_EQ(ExpandPrefix("$$rank $$", kPlace), "$rank $");
  EXPECT_EQ(ExpandPrefix("$${rank}", kPlace), "${rank}");
  EXPECT_EQ(ExpandPrefix("${${rank}", kPlace), "${11");
}

TEST(AppendPrefixedTest, EachLineGetsOne) {
  EXPECT_EQ(Prefixed("a\nb\n\nc"), "[3] a\n[3] b\n[3] \n[3] c");
  EXPECT_EQ(Prefixed(""), "");
}

TEST(AppendPrefixedTest, ALineThatGoesOnGetsNone) {
  EXPECT_EQ(Prefixed("rest\nnext\n", false), "rest\n[3] next\n");
  EXPECT_EQ(Prefixed("\n", false), "\n");
}

TEST(AppendPrefixedTest, EachStateOfAProgressBarGetsOne) {
  EXPECT_EQ(Prefixed("10%\r20%\r"), "[3] 10%\r[3] 20%\r");
  EXPECT_EQ(Prefixed("\r10%\r20%"), "\r[3] 10%\r[3] 20%");
}

TEST(AppendPrefixedTest, CarriageReturnAndNewlineAreOneEnd) {
  EXPECT_EQ(Prefixed("a\r\nb\r\r\n"), "[3] a\r\n[3] b\r\r\n");
}

TEST(AppendPrefixedTest, BytesThatAreNoTextPass) {
  std::string binary("\0\xff\n\x80", 4);
  EXPECT_EQ(Prefixed(binary), std::string("[3] \0\xff\n[3] \x80", 12));
}

TEST(AppendPrefixedTest, WithoutAPrefixTheTextStays) {
  std::string out = "before ";
  AppendPrefixed("a\r\nb", "", true, out);
  EXPECT_EQ(out, "before a\r\nb");
}

}  // namespace
}  // namespace rankrun::agent
