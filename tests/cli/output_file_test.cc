#include "cli/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/support.h"

namespace rankrun::cli {
namespace {

struct OutputFileTest : testing::Test {
  mode_t ModeOf(const std::string& path) const {
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  test::TempFolder folder;
};

TEST_F(OutputFileTest, ANewFileIsItsUsersAlone) {
  const std::string path = folder.Path("page");
  ASSERT_TRUE(WriteOutputFile(path, "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "text");
  EXPECT_EQ(ModeOf(path), 0600u);
}

TEST_F(OutputFileTest, AFileKeepsItsMode) {
  for (mode_t mode : {0600u, 0664u, 0400u}) {
    const std::string path = folder.Write(std::to_string(mode), "before");
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(WriteOutputFile(path, "text"));
    EXPECT_EQ(test::ReadWholeFile(path), "text");
    EXPECT_EQ(ModeOf(path), mode);
  }
}

TEST_F(OutputFileTest, ALinkStays) {
  const std::string path = folder.Write("target", "before");
  ASSERT_EQ(symlink(path.c_str(), folder.Path("link").c_str()), 0);
  ASSERT_TRUE(WriteOutputFile(folder.Path("link"), "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "text");
}

// As /dev/stdout: a link to a pipe without a path.
TEST_F(OutputFileTest, APipeIsWrittenTo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(WriteOutputFile("/dev/fd/" + std::to_string(ends[1]), "text"));
  close(ends[1]);
  EXPECT_EQ(test::ReadToEnd(ends[0]), "text");
  close(ends[0]);
}

TEST_F(OutputFileTest, AFailedWriteLeavesNothing) {
  EXPECT_FALSE(WriteOutputFile("/dev/full", "text"));
  EXPECT_FALSE(WriteOutputFile(folder.Path("none/page"), "text"));
  const std::string path = folder.Write("page", "before");
  ASSERT_EQ(symlink("/dev/full", folder.Path("page.tmp").c_str()), 0);
  EXPECT_FALSE(WriteOutputFile(path, "text"));
  EXPECT_EQ(test::ReadWholeFile(path), "before");
}

}  // namespace
}  // namespace rankrun::cli
