#include "base/fd.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using test::IsOpen;

int NewDescriptor() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(FdTest, OwnsNothingAtFirst) {
  Fd fd;
  EXPECT_FALSE(fd);
  EXPECT_EQ(fd.get(), Fd::kNone);
}

TEST(FdTest, ClosesAtItsEnd) {
  int number = NewDescriptor();
  {
    Fd fd(number);
    EXPECT_TRUE(fd);
    EXPECT_EQ(fd.get(), number);
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(FdTest, AMovedFromOneOwnsNothing) {
  int number = NewDescriptor();
  Fd first(number);
  {
    Fd second(std::move(first));
    EXPECT_EQ(second.get(), number);
    EXPECT_FALSE(first);
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(FdTest, AssignmentClosesThePreviousDescriptor) {
  int old_number = NewDescriptor();
  int new_number = NewDescriptor();
  Fd fd(old_number);
  fd = Fd(new_number);
  EXPECT_FALSE(IsOpen(old_number));
  EXPECT_TRUE(IsOpen(new_number));
  EXPECT_EQ(fd.get(), new_number);
}

TEST(FdTest, AssignmentToItselfKeepsIt) {
  int number = NewDescriptor();
  Fd fd(number);
  Fd& itself = fd;
  fd = std::move(itself);
  EXPECT_EQ(fd.get(), number);
  EXPECT_TRUE(IsOpen(number));
}

TEST(FdTest, ReleaseGivesItUpOpen) {
  int number = NewDescriptor();
  {
    Fd fd(number);
    EXPECT_EQ(fd.Release(), number);
    EXPECT_FALSE(fd);
  }
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(FdTest, ResetClosesAtOnce) {
  int number = NewDescriptor();
  Fd fd(number);
  fd.Reset();
  EXPECT_FALSE(fd);
  EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace rankrun
