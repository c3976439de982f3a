#include "agent/control/control_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rankrun::agent {
namespace {

using testing::ElementsAre;

std::vector<std::string> ReadAll(FrameReader& reader, std::string_view bytes) {
  std::vector<std::string> frames;
  for (;;) {
    auto frame = reader.Next(bytes);
    EXPECT_TRUE(frame) << frame.error().message;
    if (!frame || !*frame) break;
    frames.push_back(std::move(**frame));
  }
  EXPECT_EQ(bytes, "");
  return frames;
}

TEST(ControlFrameTest, TheLengthComesFirstMostSignificantByteFirst) {
  EXPECT_EQ(EncodeFrame("abc"), std::string("\0\0\0\3abc", 7));
  EXPECT_EQ(EncodeFrame(std::string(0x010203, 'x')).substr(0, 4), std::string("\0\1\2\3", 4));
  EXPECT_EQ(EncodeFrame(""), std::string(4, '\0'));
}

TEST(ControlFrameTest, SeveralInOnePieceAreReadInOrder) {
  FrameReader reader;
  EXPECT_THAT(ReadAll(reader, EncodeFrame("one") + EncodeFrame("") + EncodeFrame("three")),
              ElementsAre("one", "", "three"));
  EXPECT_FALSE(reader.is_within_frame());
}

TEST(ControlFrameTest, TheyMayBeCutAnywhere) {
  std::string stream = EncodeFrame("hello") + EncodeFrame("") + EncodeFrame("world");
  for (size_t first = 0; first <= stream.size(); ++first) {
    for (size_t second = first; second <= stream.size(); ++second) {
      FrameReader reader;
      std::vector<std::string> frames;
      for (auto piece :
           {stream.substr(0, first), stream.substr(first, second - first), stream.substr(second)}) {
        for (auto& frame : ReadAll(reader, piece)) frames.push_back(frame);
      }
      ASSERT_THAT(frames, ElementsAre("hello", "", "world")) << first << " " << second;
    }
  }
}

TEST(ControlFrameTest, TheLargestIsReadAndOneByteMoreIsRefused) {
  FrameReader reader;
  std::string largest(kMaxFrameBytes, 'x');
  EXPECT_THAT(ReadAll(reader, EncodeFrame(largest)), ElementsAre(largest));
  std::string_view over("\0\x10\0\1", 4);
  auto refused = reader.Next(over);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kProtocol);
  EXPECT_EQ(refused.error().message, "a frame of 1048577 bytes is over the limit of 1048576");
}

TEST(ControlFrameTest, TheLimitMayChangeBetweenFrames) {
  FrameReader reader(/*max_bytes=*/2);
  EXPECT_THAT(ReadAll(reader, EncodeFrame("ab")), ElementsAre("ab"));
  reader.SetMaxBytes(3);
  EXPECT_THAT(ReadAll(reader, EncodeFrame("abc")), ElementsAre("abc"));
}

TEST(ControlFrameTest, NothingIsHeldForALengthThatHasNotCome) {
  FrameReader reader;
  std::string stream = EncodeFrame(std::string(kMaxFrameBytes, 'x'));
  for (size_t arrived = 4; arrived < 3000; arrived += 100) {
    EXPECT_LE(reader.held_bytes(), 2 * arrived);
    size_t begin = arrived == 4 ? 0 : arrived - 100;
    EXPECT_THAT(ReadAll(reader, stream.substr(begin, arrived - begin)), ElementsAre());
    EXPECT_TRUE(reader.is_within_frame());
  }
}

}  // namespace
}  // namespace rankrun::agent
