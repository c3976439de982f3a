#include "agent/report/last_operations.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;

// A tick is a millisecond. Tick 0 is 2026-01-31T12:00:00 and the clocks are read at tick 20,000.
struct LastOperationsTest : testing::Test {
  LastOperationsTest() {
    const TimePoint first{};
    operations.clock = {.first_ticks = 0,
                        .first_time = first,
                        .now_ticks = 20'000,
                        .now_time = first + std::chrono::seconds(20)};
    operations.now = std::chrono::system_clock::from_time_t(1769860800) + std::chrono::seconds(20);
    operations.moment = 10'000;
  }

  FlightHistory& Group(const std::string& name) {
    operations.histories.push_back(
        {.group = name, .size = 2, .is_live = true, .begun = 2500, .operations = {}});
    return operations.histories.back();
  }

  WorkerOperations operations;
};

FlightOperation AllReduce(uint64_t number, uint64_t begin, uint64_t end,
                          FlightState state = FlightState::kSucceeded) {
  return {.what = {.kind = 1, .number = number, .count = 16, .fingerprint = 0xab},
          .state = state,
          .tag = 0,
          .begin = begin,
          .end = end};
}

TEST_F(LastOperationsTest, ThreeOfAllGroupsInTheirOrder) {
  Group("world").operations = {AllReduce(7, 1000, 1500), AllReduce(8, 4000, 4500),
                               AllReduce(9, 8000, 0, FlightState::kUnderWay)};
  Group("pair").operations = {AllReduce(1, 2000, 2500), AllReduce(2, 6000, 7000),
                              AllReduce(3, 7500, 7600, FlightState::kFailed)};
  const auto last = LastOperationsOf(operations);
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[0].what, "AllReduce #2 (16 x float32, sum)");
  EXPECT_EQ(last[0].group, "pair");
  EXPECT_EQ(last[0].ago, std::chrono::seconds(3));
  EXPECT_FALSE(last[0].has_failed || last[0].is_under_way);
  EXPECT_TRUE(last[1].has_failed);
  EXPECT_EQ(last[2].group, "world");
  EXPECT_TRUE(last[2].is_under_way);
  EXPECT_EQ(last[2].ago, std::chrono::seconds(2));
}

TEST_F(LastOperationsTest, NoneAreNone) { EXPECT_TRUE(LastOperationsOf(operations).empty()); }

TEST_F(LastOperationsTest, TheFileHasALineForEachOperation) {
  FlightHistory& world = Group("world \"of\" \xff");
  FlightOperation recv = AllReduce(0, 9000, 0, FlightState::kUnderWay);
  recv.what = {.kind = 11, .dtype = 6, .root = 3, .count = 5};
  recv.tag = 1ULL << 63;
  world.operations = {AllReduce(7, 1000, 1500), recv};
  WorkerRecord worker;
  worker.global_rank = 5;
  worker.local_rank = 1;
  worker.pid = 4711;
  const std::string text = FormatOperations(operations, worker, 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  const json file = json::parse(text, nullptr, false);
  ASSERT_TRUE(file.is_object()) << text;
  EXPECT_EQ(file["rank"], 5);
  EXPECT_EQ(file["local_rank"], 1);
  EXPECT_EQ(file["attempt"], 2);
  EXPECT_EQ(file["pid"], 4711);
  EXPECT_EQ(file["time"], "2026-01-31T12:00:10.000000Z");
  const json& group = file["groups"].at(0);
  EXPECT_EQ(group["name"], "world \"of\" \xEF\xBF\xBD");
  EXPECT_EQ(group["size"], 2);
  EXPECT_EQ(group["destroyed"], false);
  EXPECT_EQ(group["begun"], 2500);
  EXPECT_EQ(group["operations"], json::parse(R"([
    {"operation": "AllReduce", "number": 7, "count": 16, "dtype": "float32", "op": "sum",
     "fingerprint": "00000000000000ab", "state": "succeeded",
     "began": "2026-01-31T12:00:01.000000Z", "seconds": 0.5},
    {"operation": "Recv", "count": 5, "dtype": "int32", "peer": 3, "tag": 9223372036854775808,
     "state": "under way", "began": "2026-01-31T12:00:09.000000Z", "seconds": 1.0}])"));
}

TEST_F(LastOperationsTest, ImpossibleNumbersGiveAValidFile) {
  FlightOperation operation = AllReduce(~0ULL, ~0ULL, 1);
  operation.what = {.kind = 255, .dtype = 255, .op = 255, .root = -7, .number = ~0ULL};
  Group("world").operations = {operation};
  Group("other").size = -1;
  operations.histories[1].operations = {operation};
  const json file = json::parse(FormatOperations(operations, {}, 0), nullptr, false);
  ASSERT_TRUE(file.is_object());
  EXPECT_EQ(file["groups"][0]["operations"][0]["operation"], "unknown");
  EXPECT_EQ(file["groups"][0]["operations"][0]["seconds"], 0.0);
  EXPECT_EQ(LastOperationsOf(operations).size(), 2u);
}

}  // namespace
}  // namespace rankrun::agent
