#include "agent/control/cbor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

Json NestedMap(int levels) {
  Json json = Json::object();
  for (int i = 1; i < levels; ++i) json = Json{{"inner", std::move(json)}};
  return json;
}

TEST(CborMapTest, AMapComesBackAsItWas) {
  Json map{
      {"number", 70'000}, {"text", "t"}, {"bytes", Json::binary({1, 2})}, {"list", {1.5, nullptr}}};
  auto parsed = ParseCborMap(CborOf(map));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, map);
}

TEST(CborMapTest, ATruncatedMapIsRefused) {
  const std::string bytes =
      CborOf({{"a", {1, 2, 300, 70'000}}, {"b", "text"}, {"c", Json::binary({1, 2})}, {"d", 0.1}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseCborMap(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseCborMap(bytes + '\0'));
  EXPECT_EQ(ParseCborMap(CborOf(Json::array())).error().code, ErrorCode::kProtocol);
}

TEST(CborMapTest, AMapNestsAtMostSixteenLevelsDeep) {
  EXPECT_TRUE(ParseCborMap(CborOf(NestedMap(16))));
  EXPECT_FALSE(ParseCborMap(CborOf(NestedMap(17))));
}

// Each of these would exhaust the stack of a parser that calls itself.
TEST(CborMapTest, ASmallMessageCannotExhaustTheStack) {
  for (char head : {'\x5F', '\x7F', '\x81', '\x9F', '\xBF', '\xC0', '\xD8'}) {
    EXPECT_FALSE(ParseCborMap(std::string(1'000'000, head)));
    EXPECT_FALSE(ParseCborMap("\xA1\x61x" + std::string(1'000'000, head)));
  }
}

TEST(CborMapTest, CountsAndLengthsBeyondTheInputAreRefused) {
  for (char byte : {'\xFF', '\x7F', '\x0F'}) {
    const std::string number(8, byte);
    for (char head : {'\x5B', '\x7B', '\x9B', '\xBB'}) {
      EXPECT_FALSE(ParseCborMap("\xA1\x61x" + (head + number)));
      EXPECT_FALSE(ParseCborMap("\xA1\x61x" + (head + number) + std::string(100, '\0')));
    }
  }
}

}  // namespace
}  // namespace rankrun::agent
