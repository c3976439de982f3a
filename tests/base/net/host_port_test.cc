#include "base/net/host_port.h"

#include <gtest/gtest.h>

namespace rankrun {
namespace {

HostPort Parse(std::string_view text) {
  auto parsed = ParseHostPort(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : HostPort{};
}

std::string ErrorOf(std::string_view text) {
  auto parsed = ParseHostPort(text);
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  return parsed.error().message;
}

TEST(HostPortTest, ThePortMayBeMissing) {
  EXPECT_EQ(Parse("host"), (HostPort{"host", {}}));
  EXPECT_EQ(Parse("10.0.0.1"), (HostPort{"10.0.0.1", {}}));
  EXPECT_EQ(Parse("[::1]"), (HostPort{"::1", {}}));
}

TEST(HostPortTest, APortIsANumberOf16Bits) {
  EXPECT_EQ(Parse("a_b.c-d:0"), (HostPort{"a_b.c-d", 0}));
  EXPECT_EQ(Parse("host:65535"), (HostPort{"host", 65535}));
  for (std::string bad : {"host:", "host:65536", "host:-1", "host:+1", "host:http", "host:1 "}) {
    EXPECT_EQ(ErrorOf(bad),
              "want a port number from 0 to 65535 after the colon, got \"" + bad + '"');
  }
}

TEST(HostPortTest, AnIpv6AddressMayHaveBracketsAndAZone) {
  EXPECT_EQ(Parse("[::1]:29400"), (HostPort{"::1", 29400}));
  EXPECT_EQ(Parse("[fe80::1%eth0]:1"), (HostPort{"fe80::1%eth0", 1}));
  EXPECT_EQ(Parse("fe80::1:80"), (HostPort{"fe80::1", 80}));
}

TEST(HostPortTest, OtherTextsAreNoHosts) {
  for (std::string bad :
       {"", ":1", "[]", "[]:1", "[::1", "[::1:1", "::1]:1", "[host]:1", "[1.2.3.4]:1", "::1",
        "1:2:3", "ho st:1", " host:1", "host ", "http://host:1", "a,b:1", "[fe80::1%]:1"}) {
    EXPECT_EQ(ErrorOf(bad), "want HOST, HOST:PORT or [IPV6]:PORT, got \"" + bad + '"');
  }
}

TEST(HostPortTest, DigitsAndDotsAreAnAddressOrNothing) {
  for (std::string good : {"127.0.0.1", "127.1", "10.0.0.255", "1a", "1.example"}) {
    EXPECT_EQ(Parse(good + ":1"), (HostPort{good, 1}));
  }
  for (std::string bad : {"29500", "10.0.0.256", "1.2.3.4.5", "1..2"}) {
    EXPECT_EQ(ErrorOf(bad), "want HOST, HOST:PORT or [IPV6]:PORT, got \"" + bad + '"');
  }
}

TEST(HostPortTest, AHostAloneMayHaveBracketsButNoPort) {
  for (const auto& [text, host] :
       {std::pair("node-1", "node-1"), std::pair("10.0.0.1", "10.0.0.1"), std::pair("::1", "::1"),
        std::pair("[::1]", "::1"), std::pair("[fe80::1%eth0]", "fe80::1%eth0")}) {
    auto parsed = ParseHost(text);
    EXPECT_EQ(parsed ? *parsed : parsed.error().message, host);
  }
  for (std::string bad : {"node-1:29500", "10.0.0.1:80", "[::1]:29500"}) {
    EXPECT_EQ(ParseHost(bad).error().message,
              "want HOST or an IPv6 address without a port, got \"" + bad + '"');
  }
  for (std::string bad : {"", "[]", "[node-1]", "http://node-1", "node-1:", "node 1", "node-1/",
                          "29500", "a,b", "<MASTER>"}) {
    EXPECT_EQ(ParseHost(bad).error().message, "want HOST or an IPv6 address, got \"" + bad + '"');
  }
}

TEST(HostPortTest, TheTextCanBeParsedAgain) {
  EXPECT_EQ(HostPortText("a.b", 1), "a.b:1");
  EXPECT_EQ(HostPortText("::1", 29400), "[::1]:29400");
}

TEST(HostPortTest, LoopbackIsRecognisedByItsName) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"a", "10.0.0.1", "127.example.org", "1::1", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace rankrun
