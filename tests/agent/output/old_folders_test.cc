#include "agent/output/old_folders.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/job/kept_entries.h"
#include "agent/output/folder_mark.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::system_clock;
using testing::ElementsAre;
using testing::IsEmpty;

pid_t Dead() {
  pid_t child = test::Fork([] { return 0; });
  test::WaitForExit(child);
  return child;
}

FolderMark OfDeadJob() {
  FolderMark mark = MarkOfThisJob();
  mark.guardian = mark.agent = Dead();
  return mark;
}

FolderMark OfEndedJob() { return {.ended = floor<std::chrono::seconds>(system_clock::now())}; }

TEST(FolderMarkTest, IsReadAsItWasWritten) {
  const FolderMark mark = MarkOfThisJob();
  EXPECT_EQ(DecodeMark(EncodeMark(mark)), mark);
  const FolderMark ended = OfEndedJob();
  EXPECT_EQ(DecodeMark(EncodeMark(ended)), ended);
  EXPECT_EQ(mark.agent, getpid());
  EXPECT_EQ(mark.guardian, getppid());
}

TEST(FolderMarkTest, IsShortEnoughForAnInode) {
  const FolderMark longest{.ended = {},
                           .pid_space = (uint64_t{1} << 48) - 1,
                           .made = hours(24 * 365 * 3),
                           .guardian = 4194304,  // the largest pid of Linux
                           .agent = 4194304};
  EXPECT_LT(EncodeMark(longest).size(), 60U);
}

TEST(FolderMarkTest, NothingElseIsRead) {
  const std::string text = EncodeMark(MarkOfThisJob());
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(DecodeMark(text.substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(DecodeMark("hello\n"));
}

TEST(FolderMarkTest, AFolderIsInUseAsLongAsGuardianOrAgentLives) {
  FolderMark mark = OfDeadJob();
  EXPECT_TRUE(UsersAreGone(mark));
  mark.guardian = MarkOfThisJob().guardian;
  EXPECT_FALSE(UsersAreGone(mark));
  mark = OfDeadJob();
  mark.agent = MarkOfThisJob().agent;
  EXPECT_FALSE(UsersAreGone(mark));
  mark.made = std::chrono::seconds(0);  // another process has the pid
  EXPECT_TRUE(UsersAreGone(mark));
}

TEST(FolderMarkTest, AProcessThatIsNotReapedIsGone) {
  pid_t child = test::Fork([] { return pause(); });
  FolderMark mark = OfDeadJob();
  mark.agent = child;
  EXPECT_FALSE(UsersAreGone(mark));
  kill(child, SIGKILL);
  EXPECT_TRUE(test::WaitFor([&] { return UsersAreGone(mark); }));
  test::WaitForExit(child);
}

TEST(FolderMarkTest, PidsOfAnotherHostOrNamespaceMeanNothing) {
  FolderMark mark = OfDeadJob();
  mark.pid_space ^= 1;
  EXPECT_FALSE(UsersAreGone(mark));
  mark.pid_space = 0;  // it was not known
  EXPECT_FALSE(UsersAreGone(mark));
}

struct OldFoldersTest : testing::Test {
  // Makes the folder of a job. Returns its path.
  std::string Make(const std::string& name, const FolderMark& mark,
                   const std::vector<std::string>& files = {}) {
    const std::string path = folder.Path(name);
    fs::create_directories(path + "/job_x/attempt_0");
    fs::permissions(path, fs::perms::owner_all);
    EXPECT_TRUE(WriteMark(AT_FDCWD, path, mark));
    for (const std::string& file : files) folder.Write(name + "/" + file, "text");
    return path;
  }
  static void Age(const std::string& path) {
    const FolderMark ended = OfEndedJob();
    EXPECT_TRUE(WriteMark(AT_FDCWD, path, {.ended = *ended.ended - kKeptAge - hours(1)}));
  }
  std::vector<std::string> Remove() {
    return RemoveOldFolders(folder.path(), system_clock::now(),
                            std::chrono::steady_clock::now() + test::kLong);
  }

  test::TempFolder folder;
};

TEST_F(OldFoldersTest, AWeekAfterTheEndTheyGo) {
  const std::string old = Make("rankrun-old000", OfEndedJob(), {"job_x/attempt_0/0.error.json"});
  const std::string young = Make("rankrun-young0", OfEndedJob(), {"job_x/error.json"});
  Age(old);
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young + "/job_x/error.json"));
}

TEST_F(OldFoldersTest, OfKilledJobsTheEmptyOnesGoAndTheOthersAreNamedOnce) {
  const std::string empty = Make("rankrun-empty0", OfDeadJob());
  ASSERT_EQ(mkfifo((empty + "/job_x/timer").c_str(), 0600), 0);
  const std::string full = Make("rankrun-full00", OfDeadJob(), {"job_x/error.json"});
  EXPECT_THAT(Remove(), ElementsAre(full));
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(fs::exists(full + "/job_x/error.json"));
  Age(full);
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_FALSE(fs::exists(full));
}

TEST_F(OldFoldersTest, AFolderInUseStays) {
  const std::string used = Make("rankrun-used00", MarkOfThisJob(), {"job_x/error.json"});
  const std::string unused = Make("rankrun-used01", MarkOfThisJob());
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(fs::exists(used + "/job_x/error.json") && fs::exists(unused + "/job_x"));
}

TEST_F(OldFoldersTest, OtherFoldersAreNotTouched) {
  std::vector<std::string> others;
  for (const char* name :
       {"rankrun-0", "rankrun-1234567", "rankrun-a/b", "other", "rankrun-a.b.c."}) {
    others.push_back(Make(name, OfEndedJob(), {"file"}));
    Age(others.back());
  }
  others.push_back(Make("rankrun-nomark", OfEndedJob(), {"file"}));
  fs::remove(others.back() + "/" + kFolderMark);
  others.push_back(Make("rankrun-badmrk", OfEndedJob(), {"file"}));
  fs::remove(others.back() + "/" + kFolderMark);
  fs::create_symlink("rankrun", others.back() + "/" + kFolderMark);
  others.push_back(Make("rankrun-file00", OfEndedJob(), {"file"}));
  fs::remove(others.back() + "/" + kFolderMark);
  folder.Write("rankrun-file00/.rankrun-job", "rankrun-2 ended 1.");
  others.push_back(Make("rankrun-public", OfEndedJob(), {"file"}));
  Age(others.back());
  fs::permissions(others.back(), fs::perms::all);
  EXPECT_THAT(Remove(), IsEmpty());
  for (const std::string& path : others) EXPECT_TRUE(fs::exists(path + "/file")) << path;
}

TEST_F(OldFoldersTest, LinksAreRemovedAndNotFollowed) {
  const std::string outside = folder.Write("outside/precious", "text");
  const std::string old = Make("rankrun-links0", OfEndedJob(), {"file"});
  fs::create_directory_symlink(folder.Path("outside"), old + "/folder");
  fs::create_symlink(outside, old + "/job_x/link");
  fs::create_hard_link(outside, old + "/job_x/second");
  Age(old);
  // A link in the place of the folder itself.
  const std::string hidden = Make("hidden", OfEndedJob(), {"file"});
  Age(hidden);
  fs::create_directory_symlink(hidden, folder.Path("rankrun-planted"));
  fs::create_directory_symlink(hidden, folder.Path("rankrun-plante"));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(test::ReadWholeFile(outside), "text");
  EXPECT_TRUE(fs::exists(hidden + "/file"));
  EXPECT_TRUE(fs::is_symlink(folder.Path("rankrun-plante")));
}

TEST_F(OldFoldersTest, AFolderOfAnotherUserStays) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const std::string path = Make("rankrun-theirs", OfEndedJob(), {"file"});
  Age(path);
  ASSERT_EQ(lchown((path + "/" + kFolderMark).c_str(), 12345, 0), 0);
  EXPECT_THAT(Remove(), IsEmpty());
  ASSERT_EQ(lchown((path + "/" + kFolderMark).c_str(), 0, 0), 0);
  ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(fs::exists(path + "/file"));
}

TEST_F(OldFoldersTest, AfterTheDeadlineARunRemovesNoMoreAndTheNextOneTheRest) {
  std::vector<std::string> files;
  for (int i = 0; i < 100; ++i) files.push_back("job_x/" + std::to_string(i));
  const std::string old = Make("rankrun-large0", OfEndedJob(), files);
  Age(old);
  RemoveOldFolders(folder.path(), system_clock::now(), std::chrono::steady_clock::now());
  EXPECT_TRUE(fs::exists(old));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(OldFoldersTest, AFolderWithANamedOneBelowStays) {
  const std::string path = Make("rankrun-named0", OfEndedJob(), {"job_x/file"});
  Age(path);
  ClaimFolder(path + "/job_x/logs");
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(fs::exists(path + "/job_x/file"));
}

TEST_F(OldFoldersTest, AFolderWithALinkedOneBelowStays) {
  const std::string path = Make("rankrun-named0", OfEndedJob(), {"job_x/file"});
  Age(path);
  fs::create_directory_symlink(path + "/job_x", folder.Path("logs"));
  ClaimFolder(folder.Path("logs"));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(fs::exists(path + "/job_x/file"));
}

TEST_F(OldFoldersTest, AJobThatEndsLeavesOnlyFiles) {
  const std::string empty = Make("rankrun-empty0", MarkOfThisJob());
  ASSERT_EQ(mkfifo((empty + "/job_x/saving").c_str(), 0600), 0);
  EXPECT_FALSE(LeaveFolder(empty));
  EXPECT_FALSE(fs::exists(empty));
  const std::string full = Make("rankrun-full00", MarkOfThisJob(), {"job_x/error.json"});
  EXPECT_TRUE(LeaveFolder(full));
  EXPECT_TRUE(fs::exists(full + "/job_x/error.json"));
  EXPECT_FALSE(fs::exists(full + "/job_x/attempt_0"));
  auto mark = DecodeMark(fs::read_symlink(full + "/" + kFolderMark));
  EXPECT_TRUE(mark && mark->ended);
}

}  // namespace
}  // namespace rankrun::agent
