#include "comm/stores/meeting_file.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/clients/file_store.h"
#include "tests/base/support.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A user and the store that it has entered.
struct User {
  MeetingFile file;
  Result<std::unique_ptr<store::Store>> store;

  User(MeetingFile which, milliseconds timeout = test::kLong)
      : file(std::move(which)),
        store(EnterFile(file, std::chrono::steady_clock::now() + timeout, {})) {}
  void Leave() { LeaveFile(file, **store); }
};

struct MeetingFileTest : testing::Test {
  MeetingFile OfAttempt(int attempt, const std::string& user = {}) const {
    return {.path = folder.Path("meet"), .world = "run", .attempt = attempt, .user = user};
  }
  MeetingFile Of(const std::string& user) const { return OfAttempt(0, user); }
  bool IsThere() const { return std::filesystem::exists(folder.Path("meet")); }

  test::TempFolder folder;
};

TEST_F(MeetingFileTest, TheLastRankRemovesIt) {
  User one(Of("rank 0")), other(Of("rank 1"));
  ASSERT_TRUE(one.store && other.store);
  one.Leave();
  EXPECT_TRUE(IsThere());
  other.Leave();
  EXPECT_FALSE(IsThere());
  User again(Of("rank 0"));
  ASSERT_TRUE(again.store) << again.store.error().message;
  EXPECT_TRUE(IsThere());
}

TEST_F(MeetingFileTest, RanksOfAnAttemptThatDiedDoNotCount) {
  { User dead(Of("rank 0")); }
  User next(OfAttempt(1, "rank 0"));
  ASSERT_TRUE(next.store) << next.store.error().message;
  next.Leave();
  EXPECT_FALSE(IsThere());
}

TEST_F(MeetingFileTest, AUserThatEndsWithoutLeavingKeepsOthersOut) {
  User waits(Of("rank 0"));
  { User dead(Of("rank 1")); }
  User late(Of("rank 2"));
  ASSERT_FALSE(late.store);
  EXPECT_EQ(late.store.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(late.store.error().message,
              HasSubstr("meet: rank 1 has ended without Destroy(), in this run or an earlier one; "
                        "last written "));
}

TEST_F(MeetingFileTest, AFailureThatAUserNotedIsSaid) {
  {
    User dead(Of("rank 1"));
    NoteInFile(dead.file, **dead.store, "whose Init failed: no such backend");
  }
  User late(Of("rank 2"));
  ASSERT_FALSE(late.store);
  EXPECT_THAT(late.store.error().message,
              HasSubstr("rank 1, whose Init failed: no such backend, has ended"));
}

TEST_F(MeetingFileTest, AFileWithoutNamesOfUsersStaysOfUseAfterTheirDeath) {
  { User dead(Of("")); }
  User other(Of(""));
  ASSERT_TRUE(other.store);
  other.Leave();
  EXPECT_TRUE(IsThere());
}

TEST_F(MeetingFileTest, ItIsRemovedByRanksThatLeaveTogether) {
  for (int i = 0; i < 200; ++i) {
    InSharedMemory<std::atomic<int>> entered;
    auto rank = [&]() -> std::string {
      MeetingFile file = Of("rank");
      file.min_leavers = 2;
      User user(std::move(file));
      if (!user.store) return user.store.error().message;
      *entered += 1;
      while (*entered < 2) std::this_thread::yield();
      user.Leave();
      return "left";
    };
    ChildProcess one(rank), other(rank);
    ASSERT_EQ(one.Text(), "left");
    ASSERT_EQ(other.Text(), "left");
    ASSERT_FALSE(IsThere()) << "run " << i;
  }
}

TEST_F(MeetingFileTest, AFileThatIsHalfRemovedIsAnError) {
  User remover(Of("rank 0"));
  ASSERT_TRUE(remover.store);
  const std::string count = "removed " + std::to_string(remover.file.number);
  ASSERT_TRUE((*remover.store)->Set("rankrun/attempt_0/users", count));
  ASSERT_TRUE((*remover.store)->Delete("rankrun/attempt_0/user/1"));
  User stopped(Of("rank 1"), milliseconds(20));
  ASSERT_FALSE(stopped.store);
  EXPECT_EQ(stopped.store.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(stopped.store.error().message, HasSubstr("its last user is removing it"));
  remover.file.presence = {};
  User after(Of("rank 1"));
  ASSERT_FALSE(after.store);
  EXPECT_EQ(after.store.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(after.store.error().message, HasSubstr("its last user has died while it removed"));
}

TEST_F(MeetingFileTest, ItIsRemovedUnderNobodyWhoComesMeanwhile) {
  std::vector<std::jthread> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.emplace_back([this, r] {
      for (int i = 0; i < 200; ++i) {
        User user(Of("rank " + std::to_string(r)));
        ASSERT_TRUE(user.store) << user.store.error().message;
        auto written = (*user.store)->Set(std::to_string(r), "");
        ASSERT_TRUE(written) << written.error().message;
        user.Leave();
      }
    });
  }
  ranks.clear();
  EXPECT_FALSE(IsThere());
}

}  // namespace
}  // namespace rankrun::comm
