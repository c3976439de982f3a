#include <gtest/gtest.h>

#include <optional>

#include "base/net/network_interface.h"
#include "base/uv/uv_name_lookup.h"
#include "tests/base/uv/loopback.h"

namespace rankrun {
namespace {

struct NameLookupTest : testing::Test {
  Result<std::vector<SocketAddress>> LookUp(const std::string& host) {
    std::optional<Result<std::vector<SocketAddress>>> found;
    NameLookup lookup(loop, host, 29400, [&](Result<std::vector<SocketAddress>> result) {
      EXPECT_FALSE(found);
      found = std::move(result);
    });
    EXPECT_FALSE(found);
    EXPECT_TRUE(loop.RunUntil([&] { return found.has_value(); }, test::kLong));
    return std::move(*found);
  }
  Loop loop;
};

TEST_F(NameLookupTest, ANameHasAddressesWithThePort) {
  auto found = LookUp("localhost");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->empty());
  for (const SocketAddress& address : *found) {
    EXPECT_TRUE(address.is_loopback());
    EXPECT_EQ(address.port(), 29400);
  }
}

TEST_F(NameLookupTest, ANumericAddressIsItself) {
  EXPECT_EQ(LookUp("10.1.2.3")->front().ToString(), "10.1.2.3:29400");
}

TEST_F(NameLookupTest, ANameWithoutAnAddressIsAnError) {
  auto found = LookUp("no such host");
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message.starts_with("look up no such host: ")) << found.error().message;
}

TEST_F(NameLookupTest, EndedEarlyItReportsNothing) {
  for (int i = 0; i < 20; ++i) {
    NameLookup lookup(loop, "localhost", 1, [](auto) { ADD_FAILURE(); });
  }
}

TEST(InterfaceOfTest, TheLoopbackAddressesAreOfLo) {
  EXPECT_EQ(*InterfaceOf(test::Loopback(80)), "lo");
  EXPECT_EQ(*InterfaceOf(*SocketAddress::FromNumeric("::ffff:127.0.0.1", 80)), "lo");
  if (test::HasIpv6()) {
    EXPECT_EQ(*InterfaceOf(*SocketAddress::FromNumeric("::1", 80)), "lo");
  }
}

TEST(InterfaceOfTest, AnAddressOfAnotherHostIsOfNone) {
  auto interface = InterfaceOf(*SocketAddress::FromNumeric("192.0.2.1", 80));
  ASSERT_FALSE(interface);
  EXPECT_EQ(interface.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(interface.error().message, "no network interface has the address 192.0.2.1");
}

}  // namespace
}  // namespace rankrun
