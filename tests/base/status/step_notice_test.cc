#include "base/status/step_notice.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rankrun {
namespace {

TEST(StepNoticeTest, APageHasNoStepAtFirst) { EXPECT_FALSE(ReadStep(*StatusPage::Create())); }

TEST(StepNoticeTest, TheLastStepHasItsTime) {
  StatusPage page = *StatusPage::Create();
  const TimePoint before = MonotonicClock().Now();
  WriteStep(page, 0);
  WriteStep(page, 7);
  auto last = ReadStep(page);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 7);
  EXPECT_GE(last->at, before - std::chrono::milliseconds(1));
  EXPECT_LE(last->at, MonotonicClock().Now());
}

TEST(StepNoticeTest, GarbageIsNoStep) {
  StatusPage page = *StatusPage::Create();
  WriteStep(page, 7);
  auto* header = const_cast<StatusPageHeader*>(&page.header());
  std::memset(reinterpret_cast<std::byte*>(header) + kStepSlotAt, 0xFF, sizeof(StepSlot));
  EXPECT_FALSE(ReadStep(page));
}

}  // namespace
}  // namespace rankrun
