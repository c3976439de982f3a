#include "base/roll_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace rankrun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<int> NumbersIn(unsigned set) {
  std::vector<int> numbers;
  for (int i = 0; i < 32; ++i) {
    if ((set >> i & 1U) != 0) numbers.push_back(i);
  }
  return numbers;
}

// Parses "0-2, 5".
std::vector<int> ParseRanks(const std::string& text) {
  std::vector<int> numbers;
  if (text == "none") return numbers;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    size_t dash = part.find('-');
    int first = std::stoi(part);
    int last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
    for (int i = first; i <= last; ++i) numbers.push_back(i);
  }
  return numbers;
}

// Tries all participant counts up to 5, all orders of arrival and all instants.
TEST(RollCallTest, AgreesWithCountingInEveryOrderOfArrival) {
  for (int participants = 0; participants <= 5; ++participants) {
    std::vector<int> order(static_cast<size_t>(participants));
    std::iota(order.begin(), order.end(), 0);
    do {
      RollCall call(participants, TimePoint{});
      std::vector<int> missing(order);
      std::sort(missing.begin(), missing.end());
      EXPECT_EQ(call.Missing(), missing);
      for (int who : order) {
        EXPECT_FALSE(call.complete());
        EXPECT_TRUE(call.Arrive(who));
        EXPECT_FALSE(call.Arrive(who)) << "arrived twice";
        std::erase(missing, who);
        EXPECT_EQ(call.Missing(), missing);
        EXPECT_EQ(call.present(), participants - static_cast<int>(missing.size()));
      }
      EXPECT_TRUE(call.complete());
      EXPECT_EQ(call.participants(), participants);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(RollCallTest, EverySetOfRanksCanBeReadBack) {
  for (unsigned set = 0; set < 1U << 11; ++set) {
    std::vector<int> ranks = NumbersIn(set);
    EXPECT_EQ(ParseRanks(FormatRanks(ranks)), ranks) << FormatRanks(ranks);
  }
}

TEST(RollCallTest, RanksAreGroupedFromThreeOn) {
  EXPECT_EQ(FormatRanks({}), "none");
  EXPECT_EQ(FormatRanks({4}), "4");
  EXPECT_EQ(FormatRanks({4, 5}), "4, 5");
  EXPECT_EQ(FormatRanks({4, 5, 6}), "4-6");
  EXPECT_EQ(FormatRanks({0, 1, 2, 5, 7, 9, 10, 11}), "0-2, 5, 7, 9-11");
}

TEST(RollCallTest, NamesTheMissingAndTheTimeWaited) {
  TimePoint start{seconds(100)};
  RollCall call(8, start);
  for (int who : {0, 1, 2, 4, 7}) call.Arrive(who);
  EXPECT_EQ(call.Describe(start + seconds(12), ""),
            "5 of 8 present after 12.0 s, missing: 3, 5, 6");
  EXPECT_EQ(call.Describe(start + milliseconds(5), "ranks"),
            "5 of 8 present after 0.005 s, missing: ranks 3, 5, 6");
}

TEST(RollCallTest, ACompleteOneMissesNobody) {
  RollCall call(2, TimePoint{});
  call.Arrive(0);
  call.Arrive(1);
  EXPECT_EQ(call.Describe(TimePoint{seconds(1)}, "ranks"), "2 of 2 present after 1.0 s");
}

TEST(RollCallDeathTest, AnUnknownParticipantIsABug) {
  RollCall call(2, TimePoint{});
  EXPECT_DEATH(call.Arrive(2), "a participant out of range");
  EXPECT_DEATH(call.Arrive(-1), "a participant out of range");
}

}  // namespace
}  // namespace rankrun
