#include "tests/store/engine/engine_history.h"

#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

TEST(EngineHistoryTest, AgreesWithTheModelOnRandomHistories) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    RandomChoices choices(seed, 3000);
    ASSERT_EQ(CheckEngineHistory(choices), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace rankrun::store
