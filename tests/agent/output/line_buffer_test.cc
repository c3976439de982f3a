#include "agent/output/line_buffer.h"

#include <gtest/gtest.h>

#include <random>

namespace rankrun::agent {
namespace {

using Lines = std::vector<std::string>;

TEST(LineBufferTest, ALineIsHeldBackUntilItsEnd) {
  LineBuffer buffer;
  EXPECT_EQ(buffer.Add("first"), "");
  EXPECT_EQ(buffer.Add(" line\nsecond"), "first line\n");
  EXPECT_EQ(buffer.Add("\n"), "second\n");
  EXPECT_EQ(buffer.TakeRest(), "");
}

TEST(LineBufferTest, SeveralLinesAreOnePiece) {
  LineBuffer buffer;
  EXPECT_EQ(buffer.Add("a\nb\n\nc"), "a\nb\n\n");
  EXPECT_EQ(buffer.TakeRest(), "c");
  EXPECT_EQ(buffer.TakeRest(), "");
}

TEST(LineBufferTest, AProgressBarIsShownAsItMoves) {
  LineBuffer buffer;
  EXPECT_EQ(buffer.Add("10%\r"), "10%\r");
  EXPECT_EQ(buffer.Add("20%\r30"), "20%\r");
  EXPECT_EQ(buffer.Add("%\r\n"), "30%\r\n");
}

TEST(LineBufferTest, NothingInIsNothingOut) {
  LineBuffer buffer;
  EXPECT_EQ(buffer.Add(""), "");
  EXPECT_EQ(buffer.TakeRest(), "");
}

TEST(LineBufferTest, AMegabyteWithoutANewlineIsNotHoarded) {
  LineBuffer buffer;
  std::string shown;
  size_t most_held = 0;
  for (size_t i = 0; i < 1024; ++i) {
    shown += buffer.Add(std::string(1024, static_cast<char>('a' + i % 26)));
    most_held = std::max(most_held, (i + 1) * 1024 - shown.size());
  }
  EXPECT_LE(most_held, LineBuffer::kMaxPart);
  shown += buffer.TakeRest();
  ASSERT_EQ(shown.size(), 1024u * 1024u);
  for (size_t i = 0; i < 1024; ++i) ASSERT_EQ(shown[i * 1024], static_cast<char>('a' + i % 26));
}

TEST(LineBufferTest, AMegabyteAtOnceIsPassedOn) {
  LineBuffer buffer;
  EXPECT_EQ(buffer.Add(std::string(1 << 20, 'x')).size(), 1u << 20);
}

std::string RandomText(std::mt19937& random, size_t size) {
  const char letters[] = "abc\n\r";
  std::string text(size, ' ');
  for (char& c : text) c = letters[random() % 5];
  if (random() % 10 == 0) text.insert(size / 2, std::string(LineBuffer::kMaxPart + 1, 'L'));
  return text;
}

// The output is the input, however it is cut into pieces. Each piece of output
// ends where a line does, unless it is very long.
TEST(LineBufferTest, AnySplitGivesTheSameText) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text = RandomText(random, random() % 100);
    LineBuffer buffer;
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      size_t size = 1 + random() % 20;
      std::string piece = buffer.Add(std::string_view(text).substr(at, size));
      bool whole = piece.empty() || piece.back() == '\n' || piece.back() == '\r';
      EXPECT_TRUE(whole || piece.size() > LineBuffer::kMaxPart);
      shown += piece;
      at += size;
    }
    shown += buffer.TakeRest();
    ASSERT_EQ(shown, text) << "round " << round;
  }
}

TEST(TailBufferTest, KeepsAShortTextWhole) {
  TailBuffer tail;
  EXPECT_EQ(tail.Tail(), "");
  tail.Add("no newline");
  tail.Add(" yet");
  EXPECT_EQ(tail.Tail(), "no newline yet");
  EXPECT_EQ(tail.total_bytes(), 14u);
}

TEST(TailBufferTest, KeepsExactlyWhatFits) {
  TailBuffer tail;
  std::string text(TailBuffer::kKeptBytes, 'x');
  tail.Add(text);
  EXPECT_TRUE(tail.Tail() == text);
}

TEST(TailBufferTest, BeginsWithAWholeLine) {
  TailBuffer tail;
  std::string line(99, 'x');
  for (int i = 0; i < 3000; ++i) tail.Add(line + "\n");
  std::string kept = tail.Tail();
  EXPECT_EQ(tail.total_bytes(), 300'000u);
  EXPECT_LE(kept.size(), TailBuffer::kKeptBytes);
  EXPECT_GT(kept.size(), TailBuffer::kKeptBytes - 200);
  EXPECT_EQ(kept.size() % 100, 0u);
  EXPECT_TRUE(kept.starts_with(line + "\n"));
}

TEST(TailBufferTest, KeepsTheEndOfOneLineThatIsTooLong) {
  TailBuffer tail;
  tail.Add(std::string(1 << 20, 'a') + "the end\n");
  EXPECT_EQ(tail.Tail().size(), TailBuffer::kKeptBytes);
  EXPECT_TRUE(tail.Tail().ends_with("athe end\n"));
}

TEST(TailBufferTest, AnySplitKeepsTheSameEnd) {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    std::string text = RandomText(random, 200'000);
    TailBuffer tail;
    for (size_t at = 0; at < text.size();) {
      size_t size = 1 + random() % 30'000;
      tail.Add(std::string_view(text).substr(at, size));
      at += size;
    }
    EXPECT_EQ(tail.total_bytes(), text.size());
    EXPECT_LE(tail.Tail().size(), TailBuffer::kKeptBytes);
    EXPECT_GE(tail.Tail().size(), TailBuffer::kKeptBytes - LineBuffer::kMaxPart - 100);
    EXPECT_TRUE(text.ends_with(tail.Tail()));
  }
}

TEST(LastLinesTest, TakesTheLastOnesInTheirOrder) {
  EXPECT_EQ(LastLines("one\ntwo\nthree\n", 2), (Lines{"two", "three"}));
  EXPECT_EQ(LastLines("one\ntwo\nthree", 2), (Lines{"two", "three"}));
  EXPECT_EQ(LastLines("one\ntwo\n", 5), (Lines{"one", "two"}));
  EXPECT_EQ(LastLines("one\ntwo\n", 0), Lines{});
  EXPECT_EQ(LastLines("", 5), Lines{});
}

TEST(LastLinesTest, KeepsEmptyLinesBetween) {
  EXPECT_EQ(LastLines("one\n\ntwo\n", 3), (Lines{"one", "", "two"}));
}

TEST(LastLinesTest, ACarriageReturnLeavesWhatATerminalShows) {
  EXPECT_EQ(LastLines("10%\r20%\r100%\ndone\r\n", 2), (Lines{"100%", "done"}));
  EXPECT_EQ(LastLines("10%\r20%\r", 1), (Lines{"20%"}));
}

TEST(TailBufferTest, PartsByTheirPositionGiveTheWholeStream) {
  TailBuffer tail;
  tail.Add("first\nsecond\nthird");
  TailBuffer::Part part = tail.After(0, 10);
  EXPECT_EQ(part.text, "first\n");
  EXPECT_EQ(part.end(), 6u);
  part = tail.After(part.end(), 100);
  EXPECT_EQ(part.text, "second\nthird");
  EXPECT_EQ(tail.After(part.end(), 100).text, "");
  tail.Add("!");
  EXPECT_EQ(tail.After(part.end(), 100).text, "!");
}

TEST(TailBufferTest, APartDoesNotCutACharacter) {
  TailBuffer tail;
  tail.Add("a\u00e4\u20ac\n");
  EXPECT_EQ(tail.After(0, 2).text, "a");
  EXPECT_EQ(tail.After(1, 4).text, "\u00e4");
  EXPECT_EQ(tail.After(3, 2).text.size(), 2u) << "there is always progress";
}

TEST(TailBufferTest, APartBeginsLaterIfOlderBytesAreGone) {
  TailBuffer tail;
  std::string line(1023, 'x');
  for (int i = 0; i < 1000; ++i) tail.Add(line + "\n");
  TailBuffer::Part part = tail.After(5, 1 << 20);
  EXPECT_GE(part.text.size(), TailBuffer::kKeptBytes);
  EXPECT_EQ(part.end(), 1'024'000u);
  EXPECT_EQ(tail.After(2'000'000, 100).begin, 1'024'000u) << "of an earlier attempt";
  EXPECT_EQ(tail.Last(3), "xx\n");
  EXPECT_EQ(tail.Last(1 << 20).size() + part.begin, 1'024'000u);
}

}  // namespace
}  // namespace rankrun::agent
