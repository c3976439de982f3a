#include "comm/tcp/peer_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::comm::tcp {
namespace {

using testing::HasSubstr;

PeerAddress AddressOf(uint32_t interfaces, const std::vector<SocketAddress>& listeners) {
  PeerAddress address{.interfaces = interfaces, .listeners = listeners};
  for (size_t i = 0; i < kRankKeyBytes; ++i) address.key[i] = static_cast<unsigned char>(i);
  return address;
}

SocketAddress Numeric(const std::string& host, uint16_t port) {
  return *SocketAddress::FromNumeric(host, port);
}

PeerAddress WithBothFamilies() {
  return AddressOf(2, {Numeric("10.1.2.3", 65535), Numeric("fd00::1:2", 258)});
}

void ExpectDamaged(std::string_view text) {
  auto address = DecodePeerAddress(text);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ErrorCode::kProtocol);
  EXPECT_THAT(address.error().message, HasSubstr("damaged"));
}

TEST(PeerAddressTest, DecodingGivesWhatWasEncoded) {
  PeerAddress before = WithBothFamilies();
  auto after = DecodePeerAddress(Encode(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->key, before.key);
  EXPECT_EQ(after->interfaces, 2U);
  ASSERT_EQ(after->streams(), 2U);
  EXPECT_EQ(after->listeners[0].ToString(), "10.1.2.3:65535");
  EXPECT_EQ(after->listeners[1].ToString(), "[fd00::1:2]:258");
}

TEST(PeerAddressTest, ARankWithoutNamedInterfacesHasOneListener) {
  auto address = DecodePeerAddress(Encode(AddressOf(0, {Numeric("127.0.0.1", 1)})));
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(address->interfaces, 0U);
  EXPECT_EQ(address->streams(), 1U);
}

TEST(PeerAddressTest, EveryPartAndEveryLongerTextIsDamaged) {
  std::string text = Encode(WithBothFamilies());
  for (size_t size = 0; size < text.size(); ++size) ExpectDamaged(text.substr(0, size));
  ExpectDamaged(text + '\0');
  ExpectDamaged(text + text);
}

TEST(PeerAddressTest, EveryFieldHasBounds) {
  std::string text = Encode(AddressOf(1, {Numeric("10.1.2.3", 80)}));
  const size_t interfaces = 1 + kRankKeyBytes;
  const size_t family = interfaces + 1;
  for (auto [at, value] :
       {std::pair{interfaces, 17}, {interfaces, 255}, {family, 5}, {family, 6}, {family, 0}}) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(value);
    ExpectDamaged(damaged);
  }
  std::string without_port = text;
  without_port[family + 1] = without_port[family + 2] = '\0';
  ExpectDamaged(without_port);
}

TEST(PeerAddressTest, AnotherVersionIsNamed) {
  std::string text = Encode(WithBothFamilies());
  text[0] = 7;
  auto address = DecodePeerAddress(text);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ErrorCode::kProtocol);
  EXPECT_THAT(address.error().message, HasSubstr("version 7"));
}

TEST(PeerAddressTest, AScopeIsNotPublished) {
  SocketAddress local = Numeric("fe80::1%lo", 80);
  auto address = DecodePeerAddress(Encode(AddressOf(1, {local})));
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(address->listeners[0].ToString(), "[fe80::1]:80");
}

}  // namespace
}  // namespace rankrun::comm::tcp
