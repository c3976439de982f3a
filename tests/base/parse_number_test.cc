#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rankrun {
namespace {

TEST(ParseNumberTest, ANumberIsTheWholeText) {
  EXPECT_EQ(ParseNumber<int>("-7"), -7);
  EXPECT_EQ(ParseNumber<uint16_t>("65535"), 65535);
  EXPECT_EQ(ParseNumber<double>("1.5"), 1.5);
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "x", "0x1", "1.5"}) {
    EXPECT_EQ(ParseNumber<int>(bad), std::nullopt) << bad;
  }
}

TEST(ParseNumberTest, ANumberFitsItsType) {
  EXPECT_EQ(ParseNumber<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint16_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace rankrun
