#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include <rankrun/distributed.h>

#include "base/status/status_page.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using test::ScopedVariable;

struct SavingNoticeTest : testing::Test {
  StatusPage page = *StatusPage::Create();
  ScopedVariable fd{"RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str()};
  ScopedVariable path{"RANKRUN_STATUS_PATH", page.Path().c_str()};
};

TEST_F(SavingNoticeTest, TheWorkerSavesWhileANoticeExists) {
  EXPECT_FALSE(page.saving());
  {
    SavingNotice notice;
    EXPECT_TRUE(notice.heard());
    EXPECT_TRUE(page.saving());
  }
  EXPECT_FALSE(page.saving());
  { SavingNotice again; }
  EXPECT_FALSE(page.saving());
}

TEST_F(SavingNoticeTest, TheLastNoticeEndsTheSave) {
  std::optional<SavingNotice> first;
  std::optional<SavingNotice> second;
  first.emplace();
  second.emplace();
  EXPECT_TRUE(second->heard());
  first.reset();
  EXPECT_TRUE(page.saving());
  second.reset();
  EXPECT_FALSE(page.saving());
}

TEST_F(SavingNoticeTest, AForkEndsOnlyItsOwnNotice) {
  std::optional<SavingNotice> notice(std::in_place);
  const pid_t child = fork();
  if (child == 0) {
    notice.reset();
    bool is_kept = page.saving();
    { SavingNotice own; }
    _exit(is_kept && !page.saving() ? 0 : 1);
  }
  EXPECT_EQ(test::WaitForExit(child).value, 0);
}

TEST_F(SavingNoticeTest, WithoutRankrunANoticeIsNotHeard) {
  ScopedVariable none("RANKRUN_STATUS_FD", nullptr);
  SavingNotice notice;
  EXPECT_FALSE(notice.heard());
  EXPECT_FALSE(page.saving());
}

TEST_F(SavingNoticeTest, APageOfAnotherProcessIsNotChanged) {
  ScopedVariable wrong("RANKRUN_STATUS_PATH", "/proc/1/fd/3");
  SavingNotice notice;
  EXPECT_FALSE(notice.heard());
  EXPECT_FALSE(page.saving());
}

}  // namespace
}  // namespace rankrun
