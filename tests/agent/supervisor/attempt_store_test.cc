#include "agent/supervisor/attempt_store.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

TEST(AttemptStoreTest, TheStoreTakesAnEighthOfTheMemory) {
  EXPECT_EQ(StoreMemory(16 * kGiB, 64 * kMiB), 2 * kGiB);
  EXPECT_EQ(StoreMemory(2 * kGiB, 64 * kMiB), 256 * kMiB);
  EXPECT_EQ(StoreMemory(1024 * kGiB, 64 * kMiB), 4 * kGiB);
  EXPECT_EQ(StoreMemory(256 * kMiB, 64 * kMiB), 128 * kMiB) << "room for two values";
}

}  // namespace
}  // namespace rankrun::agent
