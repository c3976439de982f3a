// Choice of algorithms by measured times.

#include "bench/rankrun_bench/fit.h"

#include <gmock/gmock.h>

#include <cmath>

namespace rankrun::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FitTest, EachAlgorithmHasTheSizesAtWhichItIsTheFastest) {
  Fit fit = FitAlgorithms({{1, 2, 9, 9, 9}, {2, 3, 3, 9, 9}, {4, 4, 4, 4, 4}});
  EXPECT_THAT(fit.cuts, ElementsAre(2, 3));
  EXPECT_DOUBLE_EQ(fit.cost, std::log(1.0 * 2 * 3 * 4 * 4));
}

TEST(FitTest, AnAlgorithmThatIsNeverTheFastestHasNoSizes) {
  EXPECT_THAT(FitAlgorithms({{1, 9}, {5, 5}, {2, 1}}).cuts, ElementsAre(1, 1));
  EXPECT_THAT(FitAlgorithms({{9, 9}, {5, 5}}).cuts, ElementsAre(0));
  EXPECT_THAT(FitAlgorithms({{1, 1}, {5, 5}}).cuts, ElementsAre(2));
}

TEST(FitTest, OneOutlierDoesNotMoveTheLimit) {
  EXPECT_THAT(FitAlgorithms({{1, 1, 3, 1, 1, 9}, {2, 2, 2, 2, 2, 2}}).cuts, ElementsAre(5));
}

TEST(FitTest, ASingleAlgorithmLeavesNoChoice) {
  EXPECT_THAT(FitAlgorithms({{1, 2}}).cuts, IsEmpty());
}

// Compares with all choices, for every matrix of small times.
TEST(FitTest, NoChoiceIsCheaper) {
  for (unsigned code = 0; code < 6561; ++code) {  // 3^8
    std::vector<std::vector<double>> times(2, std::vector<double>(4));
    unsigned rest = code;
    for (auto& of_one : times) {
      for (double& time : of_one) {
        time = 1 + rest % 3;
        rest /= 3;
      }
    }
    double least = INFINITY;
    for (size_t cut = 0; cut <= 4; ++cut) {
      double cost = 0;
      for (size_t s = 0; s < 4; ++s) cost += std::log(times[s < cut ? 0 : 1][s]);
      least = std::min(least, cost);
    }
    ASSERT_NEAR(FitAlgorithms(times).cost, least, 1e-9) << code;
  }
}

}  // namespace
}  // namespace rankrun::bench
