#include "launcher/settings/own_secret.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "tests/base/support.h"
#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

mode_t ModeOf(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

struct OwnSecretTest : testing::Test {
  test::TempFolder folder;
  std::string path = folder.Path("config/rankrun/secret");

  std::string ErrorOf(std::string_view text, mode_t mode) const {
    folder.Write("config/rankrun/secret", text, mode);
    auto secret = ReadOrMakeOwnSecret(path);
    return secret ? "accepted" : secret.error().message;
  }
};

TEST(OwnSecretPathTest, TheFileIsInTheConfigurationOfTheUser) {
  EXPECT_EQ(*OwnSecretPath(EnvironmentOf({{"HOME", "/h"}})), "/h/.config/rankrun/secret");
  EXPECT_EQ(*OwnSecretPath(EnvironmentOf({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "/c"}})),
            "/c/rankrun/secret");
  EXPECT_EQ(*OwnSecretPath(EnvironmentOf({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "relative"}})),
            "/h/.config/rankrun/secret");
  EXPECT_THAT(*OwnSecretPath(EnvironmentOf({})), HasSubstr("/.config/rankrun/secret"))
      << "the home that the system knows";
}

TEST_F(OwnSecretTest, TheFirstUseMakesAFileForTheUserAlone) {
  EXPECT_EQ(ReadOwnSecret(path).error().code, ErrorCode::kNotFound);
  auto secret = ReadOrMakeOwnSecret(path);
  ASSERT_TRUE(secret) << secret.error().message;
  EXPECT_THAT(*secret, MatchesRegex("[0-9a-f]{64}"));
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(ModeOf(folder.Path("config/rankrun")), 0700u);
  EXPECT_EQ(*ReadOrMakeOwnSecret(path), *secret);
  EXPECT_EQ(*ReadOwnSecret(path), *secret);
}

TEST_F(OwnSecretTest, AllFirstUsersGetTheSameSecret) {
  constexpr size_t kUsers = 16;
  std::vector<std::string> secrets(kUsers);
  {
    std::vector<std::jthread> threads;
    for (std::string& secret : secrets) {
      threads.emplace_back([&] {
        auto made = ReadOrMakeOwnSecret(path);
        secret = made ? *made : made.error().message;
      });
    }
  }
  EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1u);
  auto files = std::filesystem::directory_iterator(folder.Path("config/rankrun"));
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "no draft is left";
}

TEST_F(OwnSecretTest, ANewSecretReplacesTheOldOne) {
  std::string first = *ReadOrMakeOwnSecret(path);
  auto replaced = ReplaceOwnSecret(path);
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_NE(*ReadOwnSecret(path), first);
  EXPECT_EQ(ModeOf(path), 0600u);
}

TEST_F(OwnSecretTest, AFileThatOthersMayOpenIsRefused) {
  for (mode_t mode : {0640u, 0604u, 0620u, 0602u}) {
    EXPECT_EQ(ErrorOf("sixteen bytes ok\n", mode),
              path + ": other users may open it; want mode 0600: chmod 600 " + path);
  }
  EXPECT_EQ(ErrorOf("sixteen bytes ok\n", 0600), "accepted");
}

TEST_F(OwnSecretTest, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  folder.Write("config/rankrun/secret", "sixteen bytes ok\n", 0600);
  ASSERT_EQ(chown(path.c_str(), 4711, 4711), 0);
  auto secret = ReadOrMakeOwnSecret(path);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().message, path + ": belongs to user 4711, want a file of user 0");
}

TEST_F(OwnSecretTest, AFileWithoutASecretIsRefused) {
  EXPECT_EQ(ErrorOf("", 0600), path + ": is empty, want a secret");
  EXPECT_EQ(ErrorOf("short\n", 0600), path + ": the secret has 5 bytes, want at least 16");
}

TEST_F(OwnSecretTest, ALinkOrAFolderIsRefused) {
  std::string target = folder.Write("elsewhere", "sixteen bytes ok\n", 0600);
  std::filesystem::create_directories(folder.Path("config/rankrun"));
  std::filesystem::create_symlink(target, path);
  EXPECT_FALSE(ReadOrMakeOwnSecret(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(ReadOrMakeOwnSecret(path).error().message, path + ": is not a file");
}

TEST_F(OwnSecretTest, AFolderThatCannotBeMadeIsNamed) {
  folder.Write("config", "a file where the folder should be");
  auto secret = ReadOrMakeOwnSecret(path);
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, HasSubstr(folder.Path("config")));
}

}  // namespace
}  // namespace rankrun::launcher
