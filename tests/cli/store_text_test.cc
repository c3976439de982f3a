#include "cli/store_text.h"

#include <gmock/gmock.h>

#include "store/server/server_stats.h"

namespace rankrun::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::system_clock::time_point kInstant{
    std::chrono::milliseconds(1'795'255'200'007)};

store::ServerStats SomeStats() {
  store::ServerStats stats{
      .uptime = std::chrono::duration<double>(12.34),
      .keys = 4,
      .queues = 1,
      .bytes = 1234,
      .largest_bytes = 4096,
      .connections = 13,
      .largest_connections = 65536,
      .traffic_bytes = 7,
      .waiters = 13,
      .waits = {{"/a\nkey", 2, {"127.0.0.1:1", "[::1]:2"}}, {"/b", 10, {"127.0.0.1:3"}}},
      .waits_omitted = 5};
  stats.requests[store::Request(store::SetRequest{}).index()] = 3;
  stats.requests[store::Request(store::WaitRequest{}).index()] = 1;
  stats.endings[static_cast<size_t>(store::Ending::kLimit)] = 2;
  return stats;
}

TEST(StoreTextTest, KeysAreOneLineEach) {
  EXPECT_EQ(KeyLine("a key", std::nullopt), "a key\n");
  EXPECT_EQ(KeyLine("a\nkey", std::nullopt), "a\\nkey\n");
  EXPECT_EQ(KeyLine("k", "a\tvalue"), "k\t7\ta\\tvalue\n");
  EXPECT_EQ(KeyLine("k", ""), "k\t0\t\n");
  EXPECT_EQ(KeyLine("k", std::string(61, 'x')), "k\t61\t" + std::string(57, 'x') + "...\n");
}

TEST(StoreTextTest, JsonHasWholeValuesAndHexadecimalBytes) {
  EXPECT_EQ(KeyJson("k", std::nullopt), R"({"key":"k"})");
  EXPECT_EQ(KeyJson("\n\"é", std::nullopt), "{\"key\":\"\\n\\\"é\"}");
  EXPECT_EQ(KeyJson("k", std::string(100, 'x')),
            R"({"key":"k","bytes":100,"value":")" + std::string(100, 'x') + "\"}");
  EXPECT_EQ(KeyJson("\xff", std::string("\x80\0", 2)),
            R"({"key_hex":"ff","bytes":2,"value_hex":"8000"})");
}

TEST(StoreTextTest, ChangesHaveTimeEventKeyAndValue) {
  EXPECT_EQ(ChangeLine({kInstant, ChangeKind::kIs, "k", "v"}),
            "2026-11-21T10:00:00.007Z\tis\tk\tv\n");
  EXPECT_EQ(ChangeLine({kInstant, ChangeKind::kSet, "a\tb", ""}),
            "2026-11-21T10:00:00.007Z\tset\ta\\tb\t\n");
  EXPECT_EQ(ChangeLine({kInstant, ChangeKind::kChanged, "k", "\n"}),
            "2026-11-21T10:00:00.007Z\tchanged\tk\t\\n\n");
  EXPECT_EQ(ChangeLine({kInstant, ChangeKind::kDeleted, "k", ""}),
            "2026-11-21T10:00:00.007Z\tdeleted\tk\n");
  EXPECT_EQ(ChangeJson({kInstant, ChangeKind::kSet, "k", "\xff"}),
            R"({"time":"2026-11-21T10:00:00.007Z","event":"set","key":"k","value_hex":"ff"})"
            "\n");
  EXPECT_EQ(ChangeJson({kInstant, ChangeKind::kDeleted, "k", ""}),
            R"({"time":"2026-11-21T10:00:00.007Z","event":"deleted","key":"k"})"
            "\n");
}

TEST(StoreTextTest, StatisticsAreATable) {
  auto text = StatsText(ToJson(SomeStats()));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "server        rankrun\n"
            "up            12.3 s\n"
            "keys          4\n"
            "queues        1\n"
            "bytes         1234 of at most 4096\n"
            "connections   13 of at most 65536\n"
            "traffic bytes 7\n"
            "closed        limit 2, protocol 0, refused 0, stalled 0\n"
            "requests      SET 3, WAIT 1\n"
            "waiters       13\n"
            "  /a\\nkey: 127.0.0.1:1, [::1]:2\n"
            "  /b: 127.0.0.1:3 and 9 more\n"
            "  and 5 more keys\n");
}

TEST(StoreTextTest, AnIdleServersStatisticsAreShort) {
  auto text = StatsText(ToJson(store::ServerStats{}));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("requests      none\nwaiters       0\n"));
}

TEST(StoreTextTest, StatisticsAreOneLineOfJson) {
  std::string json = ToJson(SomeStats());
  auto shown = StatsJson("\n " + json + "\n");
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, json + "\n");
}

TEST(StoreTextTest, StatisticsOfANewerServerMayHoldMore) {
  std::string json = ToJson(SomeStats());
  auto shown = StatsText("{\"new\": [1, 2]," + json.substr(1));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, *StatsText(json));
}

TEST(StoreTextTest, TextThatIsNotStatisticsIsAnError) {
  std::string good = ToJson(SomeStats());
  std::string deep(10'000'000, '[');
  for (const std::string& bad :
       {std::string(), std::string("no JSON"), std::string("[]"), std::string("{}"),
        std::string("{\"uptime_s\": \"x\"}"), std::string("\xff"), good.substr(0, good.size() / 2),
        deep, "{\"x\":" + deep}) {
    for (const auto& shown : {StatsText(bad), StatsJson(bad)}) {
      ASSERT_FALSE(shown) << bad.substr(0, 80);
      EXPECT_EQ(shown.error().code, ErrorCode::kProtocol);
      EXPECT_THAT(shown.error().message, HasSubstr("the store's statistics cannot be read: "));
    }
  }
}

TEST(StoreTextTest, StatisticsOfOtherServersSayThatNothingElseIsKnown) {
  EXPECT_EQ(PlainStatsText({.keys = 3, .bytes = 10}),
            "keys          3\n"
            "bytes         10 of keys and values\n"
            "this server reports nothing else; a server of rankrun also reports its limits, "
            "connections, requests and waiting clients\n");
  EXPECT_THAT(PlainStatsText({.keys = 3}),
              HasSubstr("bytes         unknown: the server cannot list its keys\n"));
  EXPECT_EQ(PlainStatsJson({.keys = 3, .bytes = 10}),
            "{\"server\":null,\"keys\":3,\"bytes\":10}\n");
  EXPECT_EQ(PlainStatsJson({.keys = 3}), "{\"server\":null,\"keys\":3,\"bytes\":null}\n");
}

}  // namespace
}  // namespace rankrun::cli
