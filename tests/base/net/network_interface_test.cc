#include "base/net/network_interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace rankrun {
namespace {

TEST(NetworkInterfaceTest, EveryAddressOfThisHostIsListedOnce) {
  auto addresses = InterfaceAddresses();
  ASSERT_TRUE(addresses) << addresses.error().message;
  EXPECT_THAT(*addresses, testing::Contains("127.0.0.1"));
  EXPECT_EQ(std::set(addresses->begin(), addresses->end()).size(), addresses->size());
  for (const std::string& text : *addresses) {
    auto address = SocketAddress::FromNumeric(text, 0);
    ASSERT_TRUE(address) << text;
    EXPECT_TRUE(InterfaceOf(*address)) << text;
  }
}

TEST(NetworkInterfaceTest, AnInterfaceHasItsAddressesIpv4First) {
  auto addresses = AddressesOfInterface("lo");
  ASSERT_TRUE(addresses) << addresses.error().message;
  EXPECT_EQ(addresses->front().Host(), "127.0.0.1");
  for (const SocketAddress& address : *addresses) EXPECT_TRUE(InterfaceOf(address));
}

TEST(NetworkInterfaceTest, AMissingInterfaceHasNoAddresses) {
  auto addresses = AddressesOfInterface("nonexistent");
  ASSERT_FALSE(addresses);
  EXPECT_EQ(addresses.error().code, ErrorCode::kSystem);
  EXPECT_EQ(addresses.error().message, "find interface nonexistent: No such device");
}

TEST(NetworkInterfaceTest, AHostIsThisOneIfAnInterfaceHasOneOfItsAddresses) {
  EXPECT_EQ(*IsThisHost(std::string("127.0.0.1")), true);
  EXPECT_EQ(*IsThisHost(std::string("192.0.2.1")), false);
  EXPECT_FALSE(IsThisHost(std::string("no such host")));
}

}  // namespace
}  // namespace rankrun
