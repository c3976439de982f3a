#include "agent/report/report_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::hours;

TEST(ReportNameTest, HasTheRunIdAndTheNode) {
  EXPECT_EQ(ReportFileName("job-7", 0x2a), "job-7-000000000000002a.report.json");
}

TEST(ReportNameTest, IsAlwaysAFileName) {
  EXPECT_EQ(ReportFileName("../a/b c\n", 0), "_.._a_b_c_-0000000000000000.report.json");
  EXPECT_EQ(ReportFileName("", 0), "_-0000000000000000.report.json");
  EXPECT_LT(ReportFileName(std::string(10'000, 'x'), 0).size(), 200u);
}

struct ReportFolderTest : testing::Test {
  std::string Content(const std::string& name) const {
    return test::ReadWholeFile(folder.Path(name));
  }

  test::TempFolder folder;
};

TEST_F(ReportFolderTest, FoldersAreTheUsersAlone) {
  const std::string path = folder.Path("a/b");
  ASSERT_TRUE(MakeReportFolder(path));
  ASSERT_TRUE(MakeReportFolder(path));
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(ReportFolderTest, AReportReplacesTheOneBefore) {
  ASSERT_TRUE(WriteReport(folder.path(), "x.report.json", "one"));
  ASSERT_TRUE(WriteReport(folder.path(), "x.report.json", "two"));
  EXPECT_EQ(Content("x.report.json"), "two");
  EXPECT_FALSE(std::filesystem::exists(folder.Path("x.report.json.tmp")));
  EXPECT_EQ(ListReports(folder.path())->size(), 1u);
}

TEST_F(ReportFolderTest, OldReportsGoAndOtherFilesStay) {
  folder.Write("old.report.json", "old");
  folder.Write("other.json", "mine");
  for (const char* name : {"old.report.json", "other.json"}) {
    std::filesystem::last_write_time(
        folder.Path(name), std::filesystem::file_time_type::clock::now() - kKeptAge - hours(1));
  }
  ASSERT_TRUE(WriteReport(folder.path(), "new.report.json", "new"));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("old.report.json")));
  EXPECT_EQ(Content("other.json"), "mine");
  auto reports = ListReports(folder.path());
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().name, "new.report.json");
}

TEST_F(ReportFolderTest, DraftsOfKilledAgentsGo) {
  for (const char* name :
       {"old.report.json.1f.tmp", "old.report.json.tmp", "now.report.json.2e.tmp", "mine.tmp"}) {
    folder.Write(name, "");
  }
  for (const char* name : {"old.report.json.1f.tmp", "old.report.json.tmp", "mine.tmp"}) {
    std::filesystem::last_write_time(folder.Path(name),
                                     std::filesystem::file_time_type::clock::now() - hours(2));
  }
  ASSERT_TRUE(WriteReport(folder.path(), "new.report.json", "new"));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("old.report.json.1f.tmp")));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("old.report.json.tmp")));
  EXPECT_TRUE(std::filesystem::exists(folder.Path("now.report.json.2e.tmp")));
  EXPECT_TRUE(std::filesystem::exists(folder.Path("mine.tmp")));
}

TEST_F(ReportFolderTest, AFolderThatCannotBeUsedIsAnError) {
  folder.Write("file", "");
  EXPECT_FALSE(MakeReportFolder(folder.Path("file/a")));
  EXPECT_FALSE(WriteReport(folder.Path("none"), "x.report.json", "one"));
  EXPECT_EQ(ListReports(folder.Path("none")).error().code, ErrorCode::kNotFound);
}

// A disk that is full: the report that is there stays.
TEST_F(ReportFolderTest, AFailedWriteLeavesTheReportBefore) {
  ASSERT_TRUE(WriteReport(folder.path(), "x.report.json", "one"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{.rlim_cur = 2, .rlim_max = before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_FALSE(WriteReport(folder.path(), "x.report.json", "two"));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(Content("x.report.json"), "one");
}

}  // namespace
}  // namespace rankrun::agent
