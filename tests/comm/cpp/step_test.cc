#include <gtest/gtest.h>

#include <rankrun/rankrun.h>
#include <rankrun/step_notice.h>

#include "base/status/step_notice.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using test::ScopedVariable;

// One test, because a process looks up its page once.
TEST(NoteStepTest, TheAgentReadsTheLastStep) {
  StatusPage page = *StatusPage::Create();
  ScopedVariable fd{"RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str()};
  ScopedVariable path{"RANKRUN_STATUS_PATH", page.Path().c_str()};
  EXPECT_FALSE(ReadStep(page));
  EXPECT_TRUE(NoteStep(0));
  EXPECT_EQ(ReadStep(page)->step, 0);
  EXPECT_EQ(rankrun_note_step(41), 1);
  EXPECT_EQ(ReadStep(page)->step, 41);
  EXPECT_TRUE(NoteStep(-1));
  EXPECT_EQ(ReadStep(page)->step, 41);
}

}  // namespace
}  // namespace rankrun
