#include "bench/rankrun_bench/table.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace rankrun::bench {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

Figures SomeFigures() {
  return {.bytes = 4096,
          .count = 1024,
          .times = {.microseconds = 2.048, .calls = 10, .batches = 3},
          .algorithm_bandwidth = 2,
          .bus_bandwidth = 3,
          .wrong = 1};
}

TEST(TableTest, LineHasTheColumnsOfNcclTests) {
  Heading heading{.collective = Collective::kAllReduce, .ranks = 4, .backend = "shm"};
  EXPECT_THAT(Words(TableLine(heading, {}, SomeFigures())),
              ElementsAre("4096", "1024", "float32", "sum", "-1", "2.05", "2.00", "3.00", "1"));
}

TEST(TableTest, CollectivesWithoutAReductionHaveNoOperationAndABarrierNoType) {
  Heading broadcast{.collective = Collective::kBroadcast, .ranks = 4, .backend = "shm"};
  EXPECT_THAT(Words(TableLine(broadcast, {}, SomeFigures())),
              ElementsAre("4096", "1024", "float32", "none", "0", "2.05", "2.00", "3.00", "1"));
  Heading barrier{.collective = Collective::kBarrier, .ranks = 4, .backend = "shm"};
  EXPECT_EQ(Words(TableLine(barrier, {}, SomeFigures()))[2], "none");
}

TEST(TableTest, ColumnsStandUnderTheirNames) {
  Heading heading{.collective = Collective::kAllReduce, .ranks = 4, .backend = "shm"};
  std::string head = TableHead(heading, {});
  std::string line = TableLine(heading, {}, SomeFigures());
  size_t names = head.find('\n') + 1;
  EXPECT_EQ(head.find('\n', names) - names, line.size() - 1);
}

TEST(TableTest, JsonLineHasAllFigures) {
  Heading heading{.collective = Collective::kAllReduce, .ranks = 4, .backend = "shm"};
  auto line = nlohmann::json::parse(JsonLine(heading, {}, SomeFigures()));
  EXPECT_EQ(line, (nlohmann::json{{"collective", "all_reduce"},
                                  {"backend", "shm"},
                                  {"ranks", 4},
                                  {"bytes", 4096},
                                  {"count", 1024},
                                  {"type", "float32"},
                                  {"redop", "sum"},
                                  {"root", -1},
                                  {"us", 2.048},
                                  {"algbw", 2.0},
                                  {"busbw", 3.0},
                                  {"wrong", 1},
                                  {"calls", 10},
                                  {"batches", 3}}));
}

TEST(TableTest, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kSendRecv, 4), 1);
}

}  // namespace
}  // namespace rankrun::bench
