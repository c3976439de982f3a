#include "agent/job/kept_entries.h"

#include <gmock/gmock.h>

namespace rankrun::agent {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;
using testing::ElementsAre;

const system_clock::time_point kNow{hours(1'000'000)};
constexpr size_t kMax = 100;

TEST(KeptEntriesTest, ThoseOverAWeekAreRemoved) {
  EXPECT_THAT(EntriesToRemove(
                  {{"new", kNow}, {"old", kNow - kKeptAge - hours(1)}, {"week", kNow - kKeptAge}},
                  kNow, kMax),
              ElementsAre("old"));
}

TEST(KeptEntriesTest, OfTooManyTheOldestAreRemoved) {
  std::vector<KeptEntry> entries;
  for (size_t i = 0; i < kMax + 2; ++i) {
    entries.push_back({std::to_string(i), kNow - std::chrono::minutes(i)});
  }
  EXPECT_THAT(EntriesToRemove(entries, kNow, kMax),
              ElementsAre(std::to_string(kMax), std::to_string(kMax + 1)));
}

TEST(KeptEntriesTest, AClockThatWasSetBackRemovesNothing) {
  EXPECT_THAT(EntriesToRemove({{"future", kNow + hours(1000)}}, kNow, kMax), ElementsAre());
}

}  // namespace
}  // namespace rankrun::agent
