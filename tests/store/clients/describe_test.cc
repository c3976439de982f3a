#include "store/clients/describe.h"

#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

using std::chrono::seconds;
using std::chrono::system_clock;

std::string After(int64_t age) {
  struct stat file {};
  file.st_mtim.tv_sec = 1'000'000;
  return DescribeAge(file, system_clock::from_time_t(1'000'000) + seconds(age));
}

TEST(DescribeTest, TheAgeOfAFileHasAUnitThatFits) {
  EXPECT_EQ(After(-5), "last written 0 s ago");
  EXPECT_EQ(After(119), "last written 119 s ago");
  EXPECT_EQ(After(120), "last written 2 min ago");
  EXPECT_EQ(After(7'199), "last written 119 min ago");
  EXPECT_EQ(After(7'200), "last written 2 h ago");
  EXPECT_EQ(After(172'799), "last written 47 h ago");
  EXPECT_EQ(After(172'800), "last written 2 days ago");
}

}  // namespace
}  // namespace rankrun::store
