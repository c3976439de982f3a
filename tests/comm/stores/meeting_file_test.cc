#include "comm/stores/meeting_file.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "store/clients/file_store.h"
#include "tests/base/support.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct MeetingFileTest : testing::Test {
  MeetingFile OfAttempt(int attempt) const { return {folder.Path("meet"), "run", attempt}; }
  auto Enter(const MeetingFile& which, milliseconds timeout = test::kLong) const {
    return EnterFile(which, std::chrono::steady_clock::now() + timeout, {});
  }
  bool IsThere() const { return std::filesystem::exists(folder.Path("meet")); }

  test::TempFolder folder;
  MeetingFile file = OfAttempt(0);
};

TEST_F(MeetingFileTest, TheLastRankRemovesIt) {
  auto one = Enter(file);
  auto other = Enter(file);
  ASSERT_TRUE(one && other);
  LeaveFile(file, **one);
  EXPECT_TRUE(IsThere());
  LeaveFile(file, **other);
  EXPECT_FALSE(IsThere());
  auto again = Enter(file);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(IsThere());
}

TEST_F(MeetingFileTest, RanksOfAnAttemptThatDiedDoNotCount) {
  auto dead = Enter(file);
  auto next = Enter(OfAttempt(1));
  ASSERT_TRUE(dead && next);
  LeaveFile(OfAttempt(1), **next);
  EXPECT_FALSE(IsThere());
}

TEST_F(MeetingFileTest, ItStaysAsLongAsARankThatDiedIsCounted) {
  { auto dead = Enter(file); }
  auto other = Enter(file);
  ASSERT_TRUE(other);
  LeaveFile(file, **other);
  EXPECT_TRUE(IsThere());
}

TEST_F(MeetingFileTest, ItIsRemovedByRanksThatLeaveTogether) {
  file.min_leavers = 2;
  for (int i = 0; i < 200; ++i) {
    InSharedMemory<std::atomic<int>> entered;
    auto rank = [&]() -> std::string {
      auto store = Enter(file);
      if (!store) return store.error().message;
      *entered += 1;
      while (*entered < 2) std::this_thread::yield();
      LeaveFile(file, **store);
      return "left";
    };
    ChildProcess one(rank), other(rank);
    ASSERT_EQ(one.Text(), "left");
    ASSERT_EQ(other.Text(), "left");
    ASSERT_FALSE(IsThere()) << "run " << i;
  }
}

TEST_F(MeetingFileTest, AFileThatIsHalfRemovedIsAnErrorAfterTheTimeout) {
  auto store = store::FileStore::Open(file.path, file.world);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->Set("rankrun/attempt_0/users", "removed"));
  auto entered = Enter(file, milliseconds(20));
  ASSERT_FALSE(entered);
  EXPECT_EQ(entered.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(entered.error().message,
              HasSubstr("its last user is removing it, or has died while it did: remove it"));
}

TEST_F(MeetingFileTest, ItIsRemovedUnderNobodyWhoComesMeanwhile) {
  std::vector<std::jthread> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.emplace_back([this, r] {
      for (int i = 0; i < 200; ++i) {
        auto store = Enter(file);
        ASSERT_TRUE(store) << store.error().message;
        auto written = (*store)->Set(std::to_string(r), "");
        ASSERT_TRUE(written) << written.error().message;
        LeaveFile(file, **store);
      }
    });
  }
  ranks.clear();
  EXPECT_FALSE(IsThere());
}

}  // namespace
}  // namespace rankrun::comm
