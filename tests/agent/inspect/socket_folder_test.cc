#include "agent/inspect/socket_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct SocketFolderTest : testing::Test {
  SocketFolderTest() {
    char name[] = "/tmp/rankrun_test_XXXXXX";
    folder = mkdtemp(name);
  }
  ~SocketFolderTest() override { std::filesystem::remove_all(folder); }
  static std::string WhyUnsafe(const std::string& path) {
    auto checked = CheckSocketFolder(path, geteuid());
    return checked ? "" : checked.error().message;
  }

  std::string folder;
};

TEST(SocketFolderNamesTest, TheRuntimeFolderComesFirst) {
  EXPECT_THAT(SocketFolders({.runtime_dir = "/x/y"}, 1000),
              ElementsAre("/x/y/rankrun", "/run/user/1000/rankrun", "/tmp/rankrun-1000"));
  EXPECT_THAT(SocketFolders({.runtime_dir = "/run/user/1000"}, 1000),
              ElementsAre("/run/user/1000/rankrun", "/tmp/rankrun-1000"));
  EXPECT_THAT(SocketFolders({.runtime_dir = "relative"}, 0),
              ElementsAre("/run/user/0/rankrun", "/tmp/rankrun-0"));
  EXPECT_THAT(SocketFolders({.socket_dir = "/a", .runtime_dir = "/x"}, 0), ElementsAre("/a"));
}

TEST(SocketFolderNamesTest, ANameHasTheJobAndThePid) {
  EXPECT_EQ(SocketName("job_1", 4711), "job_1.4711");
  EXPECT_EQ(SocketName("../a b\n", 7), "___a_b_.7");
  EXPECT_EQ(SocketName(std::string(500, 'x'), 7), std::string(40, 'x') + ".7");
  EXPECT_EQ(AgentOfSocket("job_1.4711"), 4711);
  for (const char* other : {"", ".", "job", ".7", "job.", "job.x", "job.-3", "job.0"}) {
    EXPECT_EQ(AgentOfSocket(other), std::nullopt) << other;
  }
}

TEST_F(SocketFolderTest, AFolderIsMadeForItsUserAlone) {
  auto socket = ListenForInspection({{folder + "/new"}}, geteuid(), "job.7");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(socket->path, folder + "/new/job.7");
  struct stat status {};
  ASSERT_EQ(stat((folder + "/new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(SocketFolderTest, AFolderThatOthersMayEnterIsRefused) {
  chmod(folder.c_str(), 0755);
  EXPECT_THAT(WhyUnsafe(folder),
              HasSubstr("is open to other users; rankrun uses it after chmod 700 " + folder));
  auto socket = ListenForInspection({{folder}}, geteuid(), "job.7");
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::kInvalid);
  chmod(folder.c_str(), 0700);
  EXPECT_EQ(WhyUnsafe(folder), "");
}

TEST_F(SocketFolderTest, AFolderOfAnotherUserALinkAndAFileAreRefused) {
  auto of_other = CheckSocketFolder(folder, geteuid() + 1);
  ASSERT_FALSE(of_other);
  EXPECT_THAT(of_other.error().message, HasSubstr("belongs to user"));
  std::filesystem::create_directory_symlink(folder, folder + "/link");
  EXPECT_THAT(WhyUnsafe(folder + "/link"), HasSubstr("is not a folder"));
  EXPECT_EQ(CheckSocketFolder(folder + "/none", geteuid()).error().code, ErrorCode::kNotFound);
}

TEST_F(SocketFolderTest, TheNextFolderServesIfTheFirstHasNoParentOrALongPath) {
  std::string longer = folder + "/" + std::string(100, 'x');
  auto socket = ListenForInspection({{folder + "/a/b", longer, folder + "/c"}}, geteuid(), "job.7");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(socket->path, folder + "/c/job.7");
}

TEST_F(SocketFolderTest, ASocketThatADeadAgentLeftIsReplaced) {
  ASSERT_TRUE(ListenForInspection({{folder}}, geteuid(), "job.7"));
  EXPECT_TRUE(ListenForInspection({{folder}}, geteuid(), "job.7"));
}

TEST_F(SocketFolderTest, AFolderThatIsPassedOverIsNamed) {
  std::string open = folder + "/open";
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  chmod(open.c_str(), 0755);
  auto socket = ListenForInspection({{open, folder + "/c"}}, geteuid(), "job.7");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(socket->path, folder + "/c/job.7");
  EXPECT_THAT(socket->warning, HasSubstr(open + " is open to other users"));
  auto plain = ListenForInspection({{folder + "/c"}}, geteuid(), "job.8");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->warning, "");
}

TEST(SocketFolderNamesTest, SpareFoldersAreInTmp) {
  EXPECT_EQ(SpareFolderPrefix({.runtime_dir = "/x/y"}, 1000), "/tmp/rankrun-1000.");
  EXPECT_EQ(SpareFolderPrefix({.socket_dir = "/a"}, 1000), "");
}

// Another user has made /tmp/rankrun-UID.
TEST_F(SocketFolderTest, ASpareFolderServesIfAllOthersAreUnsafe) {
  const std::string taken = folder + "/taken";
  std::filesystem::create_directory_symlink(folder, taken);
  const SocketPlaces places{.folders = {taken}, .spare_prefix = taken + "."};
  auto first = ListenForInspection(places, geteuid(), "job.7");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(first->warning, HasSubstr(taken + " is not a folder"));
  EXPECT_THAT(first->path, ::testing::MatchesRegex(taken + "\\.[A-Za-z0-9]{6}/job\\.7"));
  auto second = ListenForInspection(places, geteuid(), "job.8");
  ASSERT_TRUE(second);
  const std::string spare = std::filesystem::path(first->path).parent_path();
  EXPECT_EQ(second->path, spare + "/job.8");
  EXPECT_THAT(FindSpareFolders(places.spare_prefix, geteuid()), ElementsAre(spare));
}

TEST_F(SocketFolderTest, SpareFoldersOfOthersAreNotFound) {
  const std::string prefix = folder + "/spare.";
  ASSERT_EQ(mkdir((prefix + "open").c_str(), 0700), 0);
  ASSERT_EQ(chmod((prefix + "open").c_str(), 0755), 0);
  std::filesystem::create_directory_symlink(folder, prefix + "link");
  EXPECT_THAT(FindSpareFolders(prefix, geteuid()), ::testing::IsEmpty());
  ASSERT_EQ(mkdir((prefix + "mine").c_str(), 0700), 0);
  EXPECT_THAT(FindSpareFolders(prefix, geteuid()), ElementsAre(prefix + "mine"));
  EXPECT_THAT(FindSpareFolders(prefix, geteuid() + 1), ::testing::IsEmpty());
}

TEST_F(SocketFolderTest, ASocketThatCannotGetItsNameLeavesNothing) {
  std::filesystem::create_directories(folder + "/job.7/in the way");
  EXPECT_FALSE(ListenForInspection({{folder}}, geteuid(), "job.7"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/job.7~"));
}

}  // namespace
}  // namespace rankrun::agent
