#include "agent/plain_cbor.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

std::string Cbor(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

Json Nested(int levels) {
  Json json = Json::array();
  for (int i = 1; i < levels; ++i) json = Json::array({std::move(json), 1});
  return json;
}

TEST(PlainCborTest, AllThatWeWriteIsPlain) {
  const Json all{{"none", nullptr},
                 {"yes", true},
                 {"no", false},
                 {"small", -7},
                 {"large", std::numeric_limits<uint64_t>::max()},
                 {"float", 1.5},
                 {"not exactly", 0.1},
                 {"text", std::string(300, 't')},
                 {"bytes", Json::binary({1, 2, 3})},
                 {"empty", {Json::array(), Json::object(), ""}},
                 {"many", std::vector<int>(70'000, 70'000)}};
  EXPECT_TRUE(IsPlainCbor(Cbor(all)));
  for (const Json& one : all) EXPECT_TRUE(IsPlainCbor(Cbor(one))) << one.dump();
}

TEST(PlainCborTest, EachBeginningOfAValueIsNone) {
  const std::string bytes =
      Cbor({{"a", {1, 2, 300, 70'000}}, {"b", "text"}, {"c", Json::binary({1, 2})}, {"d", 0.1}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(IsPlainCbor(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(IsPlainCbor(bytes + '\0'));
}

TEST(PlainCborTest, SixteenLevelsAreTheMost) {
  EXPECT_TRUE(IsPlainCbor(Cbor(Nested(17))));  // the innermost is empty
  EXPECT_FALSE(IsPlainCbor(Cbor(Nested(18))));
  EXPECT_FALSE(IsPlainCbor(std::string(1'000'000, '\x81')));
}

TEST(PlainCborTest, WhatEndsLaterAndTagsAreRefused) {
  for (std::string_view head : {"\x5F", "\x7F", "\x9F", "\xBF", "\xFF", "\xC0", "\xD8", "\xF7",
                                "\xF8", "\xE0", "\x1C", "\x3F"}) {
    EXPECT_FALSE(IsPlainCbor(std::string(head) + std::string(16, '\0') + "\xFF"))
        << static_cast<int>(static_cast<unsigned char>(head.front()));
    EXPECT_FALSE(IsPlainCbor(std::string(1'000'000, head.front())));
  }
}

TEST(PlainCborTest, CountsAndLengthsBeyondTheInputAreRefused) {
  const std::string most(8, '\xFF');
  for (char head : {'\x5B', '\x7B', '\x9B', '\xBB'}) {
    EXPECT_FALSE(IsPlainCbor(head + most));
    EXPECT_FALSE(IsPlainCbor(head + most + std::string(100, '\0')));
  }
}

}  // namespace
}  // namespace rankrun::agent
