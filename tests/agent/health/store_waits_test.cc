#include "agent/health/store_waits.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{seconds(100)};

TEST(StoreWaitTimesTest, CountsFromTheFirstLook) {
  StoreWaitTimes times;
  EXPECT_EQ(times.Note({{"a", 7}}, kStart)[0].lasted, seconds(0));
  auto clients = times.Note({{"a", 7}, {"b", 8}}, kStart + seconds(3));
  ASSERT_EQ(clients.size(), 2U);
  EXPECT_EQ(clients[0].lasted, seconds(3));
  EXPECT_EQ(clients[1].lasted, seconds(0));
  EXPECT_TRUE(times.Note({}, kStart + seconds(4)).empty());
  EXPECT_EQ(times.Note({{"a", 7}}, kStart + seconds(9))[0].lasted, seconds(0)) << "another wait";
}

TEST(StoreWaitTimesTest, AKeyCannotControlTheTerminal) {
  StoreWaitTimes times;
  EXPECT_EQ(times.Note({{"a\x1b[2J", 7}}, kStart)[0].key, "a\\x1b[2J");
}

TEST(AssignStoreWaitsTest, FindsTheWorkerByItsPort) {
  std::vector<WorkerSample> samples = {{.global_rank = 0, .store_ports = {50, 51}},
                                       {.global_rank = 1, .store_ports = {52}}};
  AssignStoreWaits({{"key", 51, seconds(2)}, {"older", 50, seconds(5)}, {"gone", 99, {}}}, samples);
  ASSERT_TRUE(samples[0].store_wait);
  EXPECT_EQ(samples[0].store_wait->key, "older");
  EXPECT_EQ(samples[0].store_wait->lasted, seconds(5));
  EXPECT_FALSE(samples[1].store_wait);
}

TEST(AwaitedPortsTest, AreThoseForWhichTheMainThreadMayWait) {
  const std::map<int, uint16_t> ports = {{5, 50}, {6, 51}};
  auto awaited = [&](std::optional<std::vector<int>> descriptors) {
    return AwaitedPorts(ports, {.descriptors = std::move(descriptors)});
  };
  EXPECT_EQ(awaited(std::vector<int>{6, 9}), (std::vector<uint16_t>{51}));
  EXPECT_TRUE(awaited(std::vector<int>()).empty());
  EXPECT_EQ(awaited(std::nullopt), (std::vector<uint16_t>{50, 51})) << "unknown";
}

TEST(AssignStoreWaitsTest, LeavesOutAPortOfTwoHosts) {
  std::vector<WorkerSample> samples = {{.global_rank = 0, .store_ports = {50}},
                                       {.global_rank = 1, .store_ports = {50}}};
  AssignStoreWaits({{"key", 50, seconds(2)}}, samples);
  EXPECT_FALSE(samples[0].store_wait || samples[1].store_wait);
}

TEST(ConnectionsToTest, ReadsTheKernelsTable) {
  const char* table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "111 1 0 100 0 0 10 0\n"
      "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 "
      "222 1 0 20 4 30 10 -1\n"
      "   2: 0100007F:C351 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 "
      "333 1 0 20 4 30 10 -1\n";
  auto connections = ConnectionsTo(0x1F90, table);
  ASSERT_EQ(connections.size(), 1U);
  EXPECT_EQ(connections.at("222"), 0xC350);
  EXPECT_TRUE(ConnectionsTo(1, "").empty());
}

}  // namespace
}  // namespace rankrun::agent
