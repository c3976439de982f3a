#include "base/own_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using testing::HasSubstr;

constexpr uid_t kStranger = 65534;
constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT;

struct OwnFileTest : testing::Test {
  mode_t ModeOf(const std::string& path) const {
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }
  size_t Files() const {
    using Entries = std::filesystem::directory_iterator;
    return static_cast<size_t>(std::distance(Entries(folder.path()), Entries()));
  }
  std::string Link(const std::string& target, const std::string& name) const {
    const std::string path = folder.Path(name);
    EXPECT_EQ(symlink(target.c_str(), path.c_str()), 0);
    return path;
  }

  test::TempFolder folder;
};

TEST_F(OwnFileTest, ANewFileIsItsUsersAlone) {
  const std::string path = folder.Path("page");
  ASSERT_TRUE(WriteOutput(path, "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "text");
  EXPECT_EQ(ModeOf(path), 0600u);
  ASSERT_TRUE(OpenOwnFile(folder.Path("events"), kAppend));
  EXPECT_EQ(ModeOf(folder.Path("events")), 0600u);
}

TEST_F(OwnFileTest, AFileKeepsItsMode) {
  for (mode_t mode : {0600u, 0664u, 0400u}) {
    const std::string path = folder.Write(std::to_string(mode), "before");
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(WriteOutput(path, "text"));
    EXPECT_EQ(test::ReadWholeFile(path), "text");
    EXPECT_EQ(ModeOf(path), mode);
  }
}

TEST_F(OwnFileTest, LinksOfTheUserAreFollowed) {
  const std::string path = folder.Write("deep/target", "before");
  const std::string link = Link("up/target", "link");
  Link(folder.Path("deep"), "up");
  ASSERT_TRUE(WriteOutput(link, "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  ASSERT_TRUE(OpenOwnFile(folder.Path("up/../link"), kAppend | O_TRUNC));
  EXPECT_EQ(test::ReadWholeFile(path), "");
  EXPECT_FALSE(OpenOwnFile(link, kAppend | O_NOFOLLOW));
}

TEST_F(OwnFileTest, ALinkWithoutATargetGetsOne) {
  const std::string link = Link(folder.Path("target"), "link");
  ASSERT_TRUE(WriteOutput(link, "text"));
  EXPECT_EQ(test::ReadWholeFile(folder.Path("target")), "text");
}

TEST_F(OwnFileTest, LinksInACircleAreAnError) {
  Link("b", "a");
  Link("a", "b");
  EXPECT_THAT(WriteOutput(folder.Path("a"), "").error().message,
              HasSubstr("Too many levels of symbolic links"));
  EXPECT_FALSE(MakeOwnFolders(folder.Path("a/c"), 0700));
}

// As /dev/stdout: a link to a pipe without a path.
TEST_F(OwnFileTest, APipeIsWrittenTo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(WriteOutput("/dev/fd/" + std::to_string(ends[1]), "text"));
  close(ends[1]);
  EXPECT_EQ(test::ReadToEnd(ends[0]), "text");
  close(ends[0]);
}

TEST_F(OwnFileTest, ADescriptorOfAFileIsAppendedTo) {
  const std::string path = folder.Write("log", "before ");
  Fd file(open(path.c_str(), O_WRONLY | O_APPEND));
  ASSERT_TRUE(WriteOutput("/proc/self/fd/" + std::to_string(file.get()), "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "before text");
}

TEST_F(OwnFileTest, AFailedWriteLeavesNothing) {
  EXPECT_FALSE(WriteOutput("/dev/full", "text"));
  EXPECT_FALSE(WriteOutput(folder.Path("none/page"), "text"));
  EXPECT_FALSE(WriteOutput(folder.path(), "text"));
  EXPECT_FALSE(WriteOutput("", "text"));
  const std::string path = folder.Write("page", "before");
  { auto draft = FileDraft::CreateOutput(path); }
  EXPECT_EQ(test::ReadWholeFile(path), "before");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(OwnFileTest, APlantedDraftIsNotUsed) {
  const std::string victim = folder.Write("victim", "precious");
  for (const char* suffix : {".tmp", ".new"}) Link(victim, std::string("page") + suffix);
  ASSERT_TRUE(WriteOutput(folder.Path("page"), "text"));
  ASSERT_TRUE(ReplaceFile(folder.Path("page"), "again", 0644));
  EXPECT_EQ(test::ReadWholeFile(folder.Path("page")), "again");
  EXPECT_EQ(ModeOf(folder.Path("page")), 0644u);
  EXPECT_EQ(test::ReadWholeFile(victim), "precious");
}

TEST_F(OwnFileTest, AReplacedLinkDoesNotReachItsTarget) {
  const std::string victim = folder.Write("victim", "precious");
  const std::string link = Link(victim, "page");
  ASSERT_TRUE(ReplaceFile(link, "text"));
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_EQ(test::ReadWholeFile(victim), "precious");
}

TEST_F(OwnFileTest, AFileThatIsThereStaysIfWanted) {
  const std::string path = folder.Write("secret", "first");
  auto draft = FileDraft::Create(path);
  ASSERT_TRUE(draft);
  EXPECT_TRUE(draft->FinishIfAbsent());
  EXPECT_EQ(test::ReadWholeFile(path), "first");
}

TEST_F(OwnFileTest, FoldersAreMadeThroughLinks) {
  Link("real", "link");
  ASSERT_TRUE(MakeOwnFolders(folder.Path("real/"), 0700));
  ASSERT_TRUE(MakeOwnFolders(folder.Path("link//a/b"), 0700));
  EXPECT_EQ(ModeOf(folder.Path("real/a/b")), 0700u);
  EXPECT_TRUE(CheckOwnFolder(folder.Path("link/a")));
  folder.Write("file", "");
  EXPECT_FALSE(MakeOwnFolders(folder.Path("file/a"), 0700));
}

// A file that a stranger has linked to a shared folder has the victim as its owner.
TEST_F(OwnFileTest, AFileWithASecondNameInASharedFolderIsRefused) {
  const std::string victim = folder.Write("victim", "precious");
  ASSERT_EQ(link(victim.c_str(), folder.Path("events").c_str()), 0);
  EXPECT_TRUE(OpenOwnFile(folder.Path("events"), kAppend));
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  auto opened = OpenOwnFile(folder.Path("events"), kAppend | O_TRUNC);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("a second name"));
  EXPECT_EQ(test::ReadWholeFile(victim), "precious");
}

// A folder that all users may change, in which another user has planted files and links.
struct StrangersFileTest : OwnFileTest {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
    ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
    victim = folder.Write("mine/victim", "precious");
  }
  void GiveAway(const std::string& path) const {
    ASSERT_EQ(lchown(path.c_str(), kStranger, kStranger), 0);
  }

  std::string victim;
};

TEST_F(StrangersFileTest, LinksAreRefused) {
  const std::string file = Link(victim, "events");
  const std::string up = Link(folder.Path("mine"), "logs");
  GiveAway(file);
  GiveAway(up);
  for (const std::string& path : {file, up + "/victim"}) {
    auto written = WriteOutput(path, "text");
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, HasSubstr(" is a link of user 65534"));
    EXPECT_FALSE(OpenOwnFile(path, kAppend | O_TRUNC));
  }
  EXPECT_FALSE(MakeOwnFolders(up + "/new", 0700));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("mine/new")));
  EXPECT_EQ(test::ReadWholeFile(victim), "precious");
}

TEST_F(StrangersFileTest, ALinkOfTheUserToALinkOfAStrangerIsRefused) {
  GiveAway(Link(victim, "theirs"));
  const std::string mine = Link("theirs", "link");
  EXPECT_FALSE(WriteOutput(mine, "text"));
  EXPECT_EQ(test::ReadWholeFile(victim), "precious");
}

TEST_F(StrangersFileTest, FilesAndPipesAreRefused) {
  const std::string file = folder.Write("events", "theirs", 0666);
  const std::string fifo = folder.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  for (const std::string& path : {file, fifo}) {
    GiveAway(path);
    for (int flags : {O_RDWR | O_TRUNC, O_WRONLY | O_APPEND, O_RDONLY}) {  // no reader or writer
      EXPECT_THAT(OpenOwnFile(path, flags).error().message,
                  HasSubstr("belongs to user 65534, want a file of user 0"));
    }
    EXPECT_FALSE(WriteOutput(path, "text"));
  }
  EXPECT_EQ(test::ReadWholeFile(file), "theirs");
}

TEST_F(StrangersFileTest, FoldersAreRefusedWhereTheyMatter) {
  const std::string path = folder.Path("traces");
  ASSERT_TRUE(MakeOwnFolders(path, 0755));
  EXPECT_TRUE(CheckOwnFolder(path));
  GiveAway(path);
  EXPECT_THAT(CheckOwnFolder(path).error().message,
              HasSubstr("belongs to user 65534, want a folder of user 0"));
}

// As sudo, or a container with a mounted home.
TEST_F(StrangersFileTest, ALinkOfTheOwnerOfItsFolderLeadsToFolders) {
  const std::string home = folder.Path("home");
  ASSERT_TRUE(MakeOwnFolders(home, 0755));
  GiveAway(Link(folder.Path("mine"), "home/logs"));
  GiveAway(home);
  EXPECT_TRUE(WriteOutput(home + "/logs/page", "text"));
  EXPECT_EQ(test::ReadWholeFile(folder.Path("mine/page")), "text");
}

}  // namespace
}  // namespace rankrun
