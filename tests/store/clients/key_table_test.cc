#include "store/clients/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

using Keys = std::vector<std::string>;
using Kind = Change::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeyTable, ChangesOfMissingNamesAreHarmless) {
  KeyTable table;
  table.Apply({Kind::kDelete, "k"});
  table.Apply({Kind::kPop, "k"});
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.QueueLength("k"), 0U);
}

TEST(KeyTable, ADeletedKeyStillCountsForAWatch) {
  KeyTable table;
  KeyTable::Watch watch(table, Keys{"a", "b"}, LookupScope::kBoth);
  EXPECT_THAT(watch.Missing(), ElementsAre("a", "b"));
  table.Apply({Kind::kSet, "a", "1"});
  table.Apply({Kind::kDelete, "a"});
  EXPECT_FALSE(watch.complete());
  EXPECT_THAT(watch.Missing(), ElementsAre("b"));
  table.Apply({Kind::kPush, "b", "1"});
  EXPECT_TRUE(watch.complete());
  EXPECT_THAT(watch.Missing(), IsEmpty());
}

TEST(KeyTable, AWatchObservesItsScopeOnly) {
  KeyTable table;
  KeyTable::Watch key(table, Keys{"n"}, LookupScope::kKeys);
  KeyTable::Watch queue(table, Keys{"n"}, LookupScope::kQueues);
  table.Apply({Kind::kSet, "n", "1"});
  EXPECT_TRUE(key.complete());
  EXPECT_FALSE(queue.complete());
  table.Apply({Kind::kPush, "n", "1"});
  EXPECT_TRUE(queue.complete());
  EXPECT_TRUE(KeyTable::Watch(table, Keys{"n"}, LookupScope::kBoth).complete());
}

TEST(KeyTable, AWatchThatEndsEarlyLeavesNothingBehind) {
  KeyTable table;
  { KeyTable::Watch watch(table, Keys{"a", "a", "b"}, LookupScope::kBoth); }
  table.Apply({Kind::kSet, "a", "1"});
  table.Apply({Kind::kAppend, "b", "1"});
  EXPECT_THAT(table.Keys(), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace rankrun::store
