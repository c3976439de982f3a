#include "base/cbor_depth.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace rankrun {
namespace {

using Json = nlohmann::json;

std::string Cbor(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

std::string Repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(CborDepthTest, OnlyValuesWithinOthersCount) {
  Json flat{{"none", nullptr},
            {"yes", true},
            {"small", -7},
            {"large", std::numeric_limits<uint64_t>::max()},
            {"float", 0.1},
            {"text", std::string(300, '\x81')},
            {"bytes", Json::binary({0x81, 0x81, 0x81})}};
  EXPECT_TRUE(CborNestsWithin(Cbor(flat), 1));
  EXPECT_FALSE(CborNestsWithin(Cbor(flat), 0));
  for (const Json& value : flat) EXPECT_TRUE(CborNestsWithin(Cbor(value), 0)) << value.dump();
  EXPECT_TRUE(CborNestsWithin(Cbor(Json(std::vector<Json>(70'000, Json::array()))), 2));
}

TEST(CborDepthTest, ArraysMapsTagsAndOpenStringsAreLevels) {
  for (std::string_view level : {"\x81", "\x9F", "\xA1\x60", "\xBF\x60", "\xC0", "\x5F", "\x7F",
                                 "\x98\x01", "\x82\x40", "\x7F\x60"}) {
    std::string inner = level[0] == '\x5F' ? "\x40" : "\x60";
    EXPECT_TRUE(CborNestsWithin(Repeated(level, 16) + inner, 16));
    EXPECT_FALSE(CborNestsWithin(Repeated(level, 17) + inner, 16));
    EXPECT_FALSE(CborNestsWithin(Repeated(level, 1'000'000), 16));
  }
}

TEST(CborDepthTest, AValueAfterADeepOneIsWalkedToo) {
  const std::string most(8, '\xFF');  // a count that nlohmann's parser takes for an unknown one
  for (std::string before : {"\x9F\x5F\x40\xFF\xFF", "\x7F\xFF", "\xBF\xFF", "\xF9\x81\x81",
                             "\x41\x81", "\xA1\x61x\x80", "\xFB\x81\x81\x81\x81\x81\x81\x81\x81"}) {
    EXPECT_FALSE(CborNestsWithin("\x82" + before + Repeated("\x81", 16), 16));
  }
  EXPECT_FALSE(CborNestsWithin("\x82\x9B" + most + "\xFF" + Repeated("\x81", 16), 16));
}

// The parser stops there as well.
TEST(CborDepthTest, LevelsAfterAnErrorDoNotCount) {
  for (std::string error : {"\x1C", "\x3F", "\xFF", "\x9E", "\x7A\xFF\xFF\xFF\xFF"}) {
    EXPECT_TRUE(CborNestsWithin("\x82" + error + Repeated("\x81", 100), 16));
  }
  EXPECT_TRUE(CborNestsWithin("", 0));
  EXPECT_TRUE(CborNestsWithin("\x9B" + std::string(7, '\0'), 16));
  EXPECT_TRUE(CborNestsWithin("\x9B" + std::string(8, '\x7F') + std::string(100, '\0'), 16));
}

}  // namespace
}  // namespace rankrun
