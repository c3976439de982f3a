#include "base/net/address_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun {
namespace {

using testing::HasSubstr;

bool Contains(const std::string& range, const std::string& address) {
  auto parsed = AddressRange::Parse(range);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed->Contains(*SocketAddress::FromNumeric(address, 1234));
}

TEST(AddressRangeTest, OneAddressIsARange) {
  EXPECT_TRUE(Contains("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(Contains("10.0.0.7", "10.0.0.6"));
  EXPECT_TRUE(Contains("::1", "::1"));
  EXPECT_FALSE(Contains("::1", "::2"));
}

TEST(AddressRangeTest, APrefixOfAnyLengthCounts) {
  EXPECT_TRUE(Contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(Contains("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(Contains("10.0.0.128/25", "10.0.0.255"));
  EXPECT_FALSE(Contains("10.0.0.128/25", "10.0.0.127"));
  EXPECT_TRUE(Contains("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(Contains("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(Contains("fd00::/8", "fdff::1"));
  EXPECT_FALSE(Contains("fd00::/8", "fe00::1"));
}

TEST(AddressRangeTest, AnEmptyPrefixHoldsItsFamily) {
  EXPECT_TRUE(Contains("0.0.0.0/0", "255.1.2.3"));
  EXPECT_FALSE(Contains("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(Contains("::/0", "fd00::1"));
  EXPECT_TRUE(Contains("::/0", "10.0.0.1"));
}

TEST(AddressRangeTest, AMappedAddressIsTheIpv4One) {
  EXPECT_TRUE(Contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(Contains("10.0.0.0/8", "::ffff:11.1.2.3"));
}

TEST(AddressRangeTest, OtherTextIsRefusedWithItsReason) {
  struct {
    const char* text;
    const char* why;
  } cases[] = {
      {"", "not an IPv4 or IPv6 address"},           {"host", "not an IPv4 or IPv6 address"},
      {"10.0.0.0/", "a number from 0 to 32"},        {"10.0.0.0/33", "a number from 0 to 32"},
      {"10.0.0.0/8x", "a number from 0 to 32"},      {"10.0.0.0/-1", "a number from 0 to 32"},
      {"fd00::/129", "a number from 0 to 128"},      {"10.0.0.7/8", "bits set after its first 8"},
      {"fd00::1/64", "bits set after its first 64"},
  };
  for (const auto& one : cases) {
    auto range = AddressRange::Parse(one.text);
    ASSERT_FALSE(range) << one.text;
    EXPECT_EQ(range.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(range.error().message, HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace rankrun
