#include "cli/endpoint.h"

#include <gtest/gtest.h>

#include <map>

namespace rankrun::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Endpoint> Find(const std::optional<std::string>& flag, const Variables& variables = {}) {
  return FindStore(flag, [&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// "<address> from <origin>", or the error.
std::string Found(const std::optional<std::string>& flag, const Variables& variables = {}) {
  auto endpoint = Find(flag, variables);
  if (!endpoint) return endpoint.error().message;
  return endpoint->ToString() + " from " + endpoint->origin;
}

TEST(EndpointTest, AFlagIsNearerThanTheEnvironment) {
  Variables all{
      {"RANKRUN_STORE", "b:2"}, {"MASTER_ADDR", "c"}, {"MASTER_PORT", "3"}, {"OTHER", "x"}};
  EXPECT_EQ(Found("a:1", all), "a:1 from --store");
  EXPECT_EQ(Found(std::nullopt, all), "b:2 from RANKRUN_STORE");
  all.erase("RANKRUN_STORE");
  EXPECT_EQ(Found(std::nullopt, all), "c:3 from MASTER_ADDR and MASTER_PORT");
  EXPECT_EQ(Found(std::nullopt), "127.0.0.1:29500 from the default");
}

TEST(EndpointTest, EitherVariableOfTheMasterMayBeMissing) {
  EXPECT_EQ(Found(std::nullopt, {{"MASTER_ADDR", "node-1"}}),
            "node-1:29500 from MASTER_ADDR and MASTER_PORT");
  EXPECT_EQ(Found(std::nullopt, {{"MASTER_PORT", "1234"}}),
            "127.0.0.1:1234 from MASTER_ADDR and MASTER_PORT");
  for (const char* address : {"::1", "[::1]"}) {
    EXPECT_EQ(Found(std::nullopt, {{"MASTER_ADDR", address}, {"MASTER_PORT", "5"}}),
              "[::1]:5 from MASTER_ADDR and MASTER_PORT");
  }
}

TEST(EndpointTest, APortThatKubernetesSetForAServiceCountsAsUnset) {
  EXPECT_EQ(Found(std::nullopt, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "tcp://10.96.1.5:1"}}),
            "a:29500 from MASTER_ADDR and MASTER_PORT");
}

TEST(EndpointTest, Ipv6AddressesStandInBrackets) {
  auto endpoint = Find("[fe80::1%eth0]:65535");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->host, "fe80::1%eth0");
  EXPECT_EQ(endpoint->port, 65535);
  EXPECT_EQ(Found("[::1]:29500"), "[::1]:29500 from --store");
}

TEST(EndpointTest, ErrorsNameTheOriginOfTheValue) {
  std::string wanted =
      ": want HOST:PORT, such as node-1:29500, 127.0.0.1:29500 or [::1]:29500, got \"";
  for (const std::string bad :
       {"node-1", "", ":1", "node-1:", "node-1:0", "node-1:65536", "node-1:http", "node-1:-1",
        "::1", "::1:29500", "[]:1", "[::1]", "[node-1]:1", "[::1:1", "1.2.3.4:1 "}) {
    EXPECT_EQ(Found(bad), "--store" + wanted + bad + '"');
    EXPECT_EQ(Find(bad).error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(Found(std::nullopt, {{"RANKRUN_STORE", "x"}}), "RANKRUN_STORE" + wanted + "x\"");
  EXPECT_EQ(Found(std::nullopt, {{"MASTER_ADDR", "node-1:29500"}}),
            "MASTER_ADDR: want HOST or an IPv6 address without a port, got \"node-1:29500\"");
  EXPECT_EQ(Found(std::nullopt, {{"MASTER_ADDR", "c"}, {"MASTER_PORT", "0"}}),
            "MASTER_PORT: want a port number from 1 to 65535, got \"0\"");
}

}  // namespace
}  // namespace rankrun::cli
