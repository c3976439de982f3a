#include "launcher/settings/endpoint.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

std::string ErrorOf(std::string_view text) {
  auto endpoints = ParseEndpoints(text);
  return endpoints ? "accepted" : endpoints.error().message;
}

TEST(EndpointTest, AListHasHostsAndPerhapsPorts) {
  auto endpoints = ParseEndpoints("a, b:1,[::1],[fe80::1]:29400");
  ASSERT_TRUE(endpoints) << endpoints.error().message;
  EXPECT_EQ(*endpoints,
            (std::vector<HostPort>{{"a", {}}, {"b", 1}, {"::1", {}}, {"fe80::1", 29400}}));
}

TEST(EndpointTest, EachPartIsAnEndpoint) {
  EXPECT_EQ(ErrorOf(""), "want HOST, HOST:PORT or [IPV6]:PORT, got \"\"");
  EXPECT_EQ(ErrorOf("a,"), "want HOST, HOST:PORT or [IPV6]:PORT, got \"\"");
  EXPECT_EQ(ErrorOf("a,b c"), "want HOST, HOST:PORT or [IPV6]:PORT, got \"b c\"");
  EXPECT_EQ(ErrorOf("a,b:"), "want a port number from 0 to 65535 after the colon, got \"b:\"");
}

}  // namespace
}  // namespace rankrun::launcher
