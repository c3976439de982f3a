#include "cli/store_serve.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "cli/store_commands.h"

namespace rankrun::cli {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

launcher::ParsedFlags Parse(const Words& arguments) {
  const Command& serve = StoreCommands().front();
  launcher::FlagTable table{.command = serve.title, .flags = serve.flags};
  auto parsed = launcher::ParseArguments(table, launcher::FlagsEnd::kNowhere, arguments);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed->flags;
}

store::ServerOptions OptionsOf(const Words& arguments) {
  auto options = ServerOptionsOf(Parse(arguments));
  EXPECT_TRUE(options) << options.error().message;
  return options ? *options : store::ServerOptions{};
}

// Returns texts such as "127.0.0.1:1" and "127.0.0.1:1 if there is one".
Words AddressesOf(const Words& arguments) {
  Words addresses;
  for (const store::BindAddress& bind : OptionsOf(arguments).addresses) {
    addresses.push_back(bind.address.ToString() + (bind.optional ? " if there is one" : ""));
  }
  return addresses;
}

std::string DefaultOf(std::string_view name) {
  for (const launcher::Flag& flag : StoreCommands().front().flags) {
    if (flag.name == name) return std::string(flag.default_value);
  }
  return "no such flag";
}

TEST(StoreServeTest, TheDefaultsAreThoseOfTheTable) {
  store::ServerOptions options = OptionsOf({});
  EXPECT_EQ(options.limits.key_bytes, launcher::ParseSize(DefaultOf("max-key")));
  EXPECT_EQ(options.limits.value_bytes, launcher::ParseSize(DefaultOf("max-value")));
  EXPECT_EQ(options.largest_store_bytes, launcher::ParseSize(DefaultOf("max-bytes")));
  EXPECT_EQ(options.largest_traffic_bytes, launcher::ParseSize(DefaultOf("max-traffic")));
  EXPECT_EQ(std::to_string(options.admission.connections), DefaultOf("max-connections"));
  EXPECT_EQ(std::to_string(options.half_request_timeout / std::chrono::seconds(1)),
            DefaultOf("half-request-timeout"));
  EXPECT_EQ(std::to_string(options.addresses.front().address.port()), DefaultOf("port"));
  EXPECT_TRUE(options.admission.allowed.empty());
}

TEST(StoreServeTest, ReadsEveryFlag) {
  store::ServerOptions options =
      OptionsOf({"--port=7", "--max-key=1K", "--max-value=1G", "--max-bytes", "2G",
                 "--max-traffic=3G", "--max-connections=9", "--allow=10.0.0.0/8", "--allow", "::1",
                 "--half-request-timeout=0.5"});
  EXPECT_EQ(options.addresses.front().address.port(), 7);
  EXPECT_EQ(options.limits.key_bytes, size_t{1} << 10);
  EXPECT_EQ(options.limits.value_bytes, size_t{1} << 30);
  EXPECT_EQ(options.largest_store_bytes, size_t{2} << 30);
  EXPECT_EQ(options.largest_traffic_bytes, size_t{3} << 30);
  EXPECT_EQ(options.admission.connections, 9U);
  EXPECT_EQ(options.admission.allowed.size(), 2U);
  EXPECT_EQ(options.half_request_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(options.limits.request_bytes, (size_t{2} << 30) + 1024)
      << "COMPARE_SET carries two values";
}

TEST(StoreServeTest, ListensOnLoopbackByDefault) {
  EXPECT_THAT(AddressesOf({"--port=1"}), ElementsAre("127.0.0.1:1", "[::1]:1 if there is one"));
  EXPECT_THAT(AddressesOf({"--port=1", "--host=127.0.0.2"}), ElementsAre("127.0.0.2:1"));
  EXPECT_THAT(AddressesOf({"--port=1", "--host=all"}),
              ElementsAre("0.0.0.0:1", "[::]:1 if there is one"));
  EXPECT_THAT(AddressesOf({"--port=1", "--host=127.0.0.2", "--host=all", "--host=127.0.0.2"}),
              ElementsAre("127.0.0.2:1", "0.0.0.0:1", "[::]:1 if there is one"));
}

}  // namespace
}  // namespace rankrun::cli
