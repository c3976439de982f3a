// The flight recorder of a worker's groups, beside its status page.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status/activity.h"
#include "base/status/flight_reader.h"
#include "base/status/status_page.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

// Returns "world: AllReduce #1 (4 x int32, sum); Recv (1 x int32 from rank 0) failed".
std::string HistoryOf(const StatusPage& page) {
  std::string text;
  for (const FlightHistory& history : ReadFlightHistories(page)) {
    text += (text.empty() ? "" : "\n") + history.group + ":";
    for (const FlightOperation& operation : history.operations) {
      text += (text.back() == ':' ? " " : "; ") + DescribeOperation(operation.what);
      if (operation.state == FlightState::kFailed) text += " failed";
      if (operation.state == FlightState::kUnderWay) text += " under way";
    }
  }
  return text;
}

// Runs `body` on two ranks with a status page each; returns the histories that it leaves.
std::vector<std::string> HistoriesAfter(const std::function<void(ProcessGroup& world)>& body) {
  return OnRanks(2, [&](int) {
    auto page = StatusPage::Create();
    UsePage(*page);
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(60)});
    body(world);
    // The wait for a message may end just before its record does.
    test::WaitFor([&] { return HistoryOf(*page).find("under way") == std::string::npos; });
    return HistoryOf(*page);
  });
}

TEST(FlightRecorderTest, HasCollectivesMessagesAndBarriersInTheirOrder) {
  const auto histories = HistoriesAfter([](ProcessGroup& world) {
    std::vector<int32_t> values(4, 1);
    world.AllReduce(values);
    std::vector<int32_t> one(1);
    if (world.global_rank() == 0) {
      world.Send(one, GlobalRank{1});
    } else {
      world.Recv(one, std::nullopt);
    }
    world.MonitoredBarrier();
    Work work = world.Broadcast(values, GlobalRank{1}, kAsync);
    work.Wait();
    // An asynchronous message ends in another thread.
    Work message = world.global_rank() == 0 ? world.IRecv(one, GlobalRank{1}, 3)
                                            : world.ISend(one, GlobalRank{0}, 3);
    message.Wait();
    world.Barrier();
  });
  const std::string begin = "world: AllReduce #1 (4 x int32, sum); ";
  const std::string middle = "; MonitoredBarrier #1; Broadcast #2 (4 x int32 from rank 1); ";
  EXPECT_EQ(histories[0], begin + "Send (1 x int32 to rank 1)" + middle +
                              "Recv (1 x int32 from rank 1); Barrier #3");
  EXPECT_EQ(histories[1], begin + "Recv (1 x int32 from rank 0)" + middle +
                              "Send (1 x int32 to rank 0); Barrier #3");
}

TEST(FlightRecorderTest, ShowsWhatFailed) {
  const auto histories = HistoriesAfter([](ProcessGroup& world) {
    std::vector<int32_t> values(world.global_rank() == 0 ? 4 : 5);
    ErrorOf([&] { world.AllReduce(values); });
  });
  EXPECT_EQ(histories[0], "world: AllReduce #1 (4 x int32, sum) failed");
  EXPECT_EQ(histories[1], "world: AllReduce #1 (5 x int32, sum) failed");
}

TEST(FlightRecorderTest, KeepsTheGroupsApart) {
  const auto histories = HistoriesAfter([](ProcessGroup& world) {
    ProcessGroup& pair = NewGroup({.description = "pair"});
    pair.Barrier();
    world.Barrier();
  });
  EXPECT_EQ(histories[0], histories[1]);
  EXPECT_NE(histories[0].find("world: Barrier #1\n"), std::string::npos) << histories[0];
  EXPECT_NE(histories[0].find("pair"), std::string::npos) << histories[0];
}

}  // namespace
}  // namespace rankrun::comm
