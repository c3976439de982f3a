#include "launcher/plan/machine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/fd.h"
#include "base/write_all.h"
#include "tests/base/support.h"

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;

TEST(FullNameTest, ANameOfAnotherHostIsNotOurs) {
  EXPECT_EQ(FullNameOf("255.255.255.255"), "");
  EXPECT_EQ(FullNameOf("no such host"), "");
}

TEST(FullNameTest, ANameWithAnAddressOfThisHostIsOurs) { EXPECT_NE(FullNameOf("localhost"), ""); }

struct SettingsFileTest : testing::Test {
  std::string ErrorOf(const std::string& path) {
    auto text = ReadSettingsFile(path, milliseconds(50));
    return text ? "read: " + *text : text.error().message;
  }

  std::string Pipe() const {
    std::string path = folder.Path("pipe");
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  test::TempFolder folder;
};

TEST_F(SettingsFileTest, AFileIsReadWhole) {
  std::string text(100'000, ' ');
  EXPECT_EQ(*ReadSettingsFile(folder.Write("job.json", text)), text);
  EXPECT_EQ(*ReadSettingsFile(folder.Write("empty.json", "")), "");
}

TEST_F(SettingsFileTest, ASecretThatOthersMayReadIsSeen) {
  std::string path = folder.Write("secret", "hush\n");
  for (mode_t mode : {0600u, 0640u, 0604u, 0400u}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    auto secret = ReadSecretFile(path);
    ASSERT_TRUE(secret) << secret.error().message;
    EXPECT_EQ(secret->text, "hush\n");
    EXPECT_EQ(secret->others_may_read, (mode & 0044) != 0);
  }
  EXPECT_FALSE(ReadSecretFile(folder.Path("gone")));
}

TEST_F(SettingsFileTest, AFileThatAllMayWriteIsRefused) {
  std::string path = folder.Write("job.json", "{}", 0666);
  EXPECT_EQ(ErrorOf(path), path + ": all users may write it; want it closed to them (chmod o-w)");
  EXPECT_FALSE(ReadSecretFile(path));
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  EXPECT_EQ(ErrorOf(path), "read: {}");
}

TEST_F(SettingsFileTest, AnotherUsersFileIsTrustedWhereNotAllMayWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  std::string path = folder.Write("job.json", "{}");
  ASSERT_EQ(chown(path.c_str(), 4711, 4711), 0);
  EXPECT_EQ(ErrorOf(path), "read: {}");
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  EXPECT_EQ(ErrorOf(path), path + ": belongs to user 4711, in a folder that all users may write");
}

TEST_F(SettingsFileTest, ASecretOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  const std::string path = folder.Write("secret", "hush\n", 0600);
  const std::string fifo = folder.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& theirs : {path, fifo}) {
    ASSERT_EQ(chown(theirs.c_str(), 4711, 4711), 0);
    auto secret = ReadSecretFile(theirs);
    ASSERT_FALSE(secret);
    EXPECT_EQ(secret.error().message, theirs +
                                          ": belongs to user 4711, want a file of user 0 or root, "
                                          "because another user knows its secret");
  }
}

TEST_F(SettingsFileTest, APipeIsReadToItsEnd) {
  std::string path = Pipe();
  std::string text(200'000, ' ');  // more than it holds
  std::thread writer([&] {
    Fd end(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    WriteAll(end.get(), text);
  });
  EXPECT_EQ(*ReadSettingsFile(path), text);
  writer.join();
}

TEST_F(SettingsFileTest, APipeWhoseWriterIsGoneIsReadToo) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  WriteAll(writer.get(), "{}");
  writer.Reset();
  EXPECT_EQ(*ReadSettingsFile("/dev/fd/" + std::to_string(reader.get())), "{}");
}

TEST_F(SettingsFileTest, APipeThatBringsNothingOrNoEndIsGivenUp) {
  std::string path = Pipe();
  EXPECT_EQ(ErrorOf(path), path + ": no data within 0.050 s");
  Fd both(open(path.c_str(), O_RDWR | O_CLOEXEC));
  WriteAll(both.get(), "{}");
  EXPECT_EQ(ErrorOf(path), path + ": no end of file within 0.050 s");
}

TEST_F(SettingsFileTest, OnlySmallFilesAreRead) {
  EXPECT_EQ(ErrorOf(folder.path()), folder.path() + ": is a folder, want a file");
  EXPECT_EQ(ErrorOf("/dev/zero"), "/dev/zero: larger than 1 MiB");
  EXPECT_EQ(ErrorOf("/no/such/file"), "/no/such/file: No such file or directory");
}

}  // namespace
}  // namespace rankrun::launcher
