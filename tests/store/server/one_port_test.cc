#include "store/server/one_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"
#include "tests/store/server/raw_client.h"

namespace rankrun::store {
namespace {

using testing::HasSubstr;

SocketAddress Address(const std::string& host, uint16_t port = 0) {
  return *SocketAddress::FromNumeric(host, port);
}

struct OnePortTest : testing::Test {
  auto Listen(const std::vector<BindAddress>& addresses) {
    return ListenOnOnePort(loop, addresses, [this](std::unique_ptr<Stream>) { ++accepted; });
  }
  Loop loop;
  int accepted = 0;
};

TEST_F(OnePortTest, AFreePortIsSharedByAllAddresses) {
  auto listeners = Listen({{Address("127.0.0.1")}, {Address("127.0.0.2")}, {Address("127.0.0.3")}});
  ASSERT_TRUE(listeners) << listeners.error().message;
  ASSERT_EQ(listeners->size(), 3u);
  uint16_t port = listeners->front()->address().port();
  EXPECT_NE(port, 0);
  for (auto& listener : *listeners) {
    EXPECT_EQ(listener->address().port(), port);
    RawClient client(listener->address());
  }
  EXPECT_TRUE(loop.RunUntil([this] { return accepted == 3; }, std::chrono::seconds(10)));
}

TEST_F(OnePortTest, AnOptionalAddressThatTheHostLacksIsLeftOut) {
  // TEST-NET-1, which no host has.
  auto listeners = Listen({{Address("192.0.2.1"), true}, {Address("127.0.0.1")}});
  ASSERT_TRUE(listeners) << listeners.error().message;
  EXPECT_EQ(listeners->size(), 1u);
}

TEST_F(OnePortTest, TheIpv6LoopbackMayBeOptional) {
  auto listeners = Listen({{Address("127.0.0.1")}, {Address("::1"), true}});
  ASSERT_TRUE(listeners) << listeners.error().message;
  EXPECT_EQ(listeners->front()->address().port(), listeners->back()->address().port());
}

TEST_F(OnePortTest, ARequiredAddressThatTheHostLacksIsAnError) {
  auto listeners = Listen({{Address("127.0.0.1")}, {Address("192.0.2.1")}});
  ASSERT_FALSE(listeners);
  EXPECT_EQ(listeners.error().code, ErrorCode::kSystem);
  EXPECT_THAT(listeners.error().message, HasSubstr("listen on 192.0.2.1:"));
}

TEST_F(OnePortTest, NoAddressAtAllIsAnError) {
  EXPECT_FALSE(Listen({}));
  EXPECT_FALSE(Listen({{Address("192.0.2.1"), true}}));
}

TEST_F(OnePortTest, AnOptionalAddressWhosePortIsTakenIsAnError) {
  auto first = Listen({{Address("127.0.0.2")}});
  ASSERT_TRUE(first);
  uint16_t port = first->front()->address().port();
  auto both = Listen({{Address("127.0.0.1", port)}, {Address("127.0.0.2", port), true}});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("Address already in use"));
}

TEST_F(OnePortTest, DifferentPortsAreRefused) {
  auto listeners = Listen({{Address("127.0.0.1", 1234)}, {Address("127.0.0.2", 1235)}});
  ASSERT_FALSE(listeners);
  EXPECT_EQ(listeners.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace rankrun::store
