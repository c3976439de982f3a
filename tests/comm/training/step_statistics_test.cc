#include "comm/training/step_statistics.h"

#include <gtest/gtest.h>

namespace rankrun::comm {
namespace {

using std::chrono::nanoseconds;

TEST(StepStatisticsTest, TheFirstTenStepsAndEveryHundredAreSampled) {
  std::string samples;
  for (int64_t step = 0; step <= 300; ++step) {
    if (TakesSample(step)) samples += " " + std::to_string(step);
  }
  EXPECT_EQ(samples, " 1 2 3 4 5 6 7 8 9 10 100 200 300");
}

StepTimes Times(int forward, int backward, int comm_begin, int comm_end) {
  TimePoint begin;
  return {begin, begin + nanoseconds(forward), begin + nanoseconds(forward + backward),
          begin + nanoseconds(comm_begin), begin + nanoseconds(comm_end)};
}

TEST(StepStatisticsTest, TimesAreMeans) {
  StepStatistics statistics;
  DataParallelLog log{.rank = 1, .world_size = 2, .module_name = "Two"};
  statistics.Add(1, Times(100, 50, 110, 170), 0, log);
  EXPECT_EQ(DescribeTimes(log),
            "[Rank 1 / 2] [before iteration 1] Training Two unused_parameter_size=0\n"
            " Avg forward compute time: 100\n"
            " Avg backward compute time: 50\n"
            " Avg backward comm. time: 60\n"
            " Avg backward comm/comp overlap time: 40");
  statistics.Add(2, Times(200, 50, 230, 240), 8, log);
  EXPECT_EQ(DescribeTimes(log),
            "[Rank 1 / 2] [before iteration 2] Training Two unused_parameter_size=8\n"
            " Avg forward compute time: 150\n"
            " Avg backward compute time: 50\n"
            " Avg backward comm. time: 35\n"
            " Avg backward comm/comp overlap time: 25");
}

TEST(StepStatisticsTest, CommunicationAfterTheBackwardPassIsNoOverlap) {
  StepStatistics statistics;
  DataParallelLog log;
  statistics.Add(1, Times(100, 50, 160, 170), 0, log);
  EXPECT_EQ(log.avg_backward_comm_time, 10);
  EXPECT_EQ(log.avg_backward_compute_comm_overlap_time, 0);
}

}  // namespace
}  // namespace rankrun::comm
