#include "agent/output/log_directory.h"

#include <gmock/gmock.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

size_t EntriesIn(const std::string& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), {}));
}

struct LogDirectoryTest : testing::Test {
  LogDirectory Temporary() {
    auto created = LogDirectory::CreateTemporary("job");
    EXPECT_TRUE(created) << created.error().message;
    return std::move(*created);
  }
  LogDirectory Named(const std::string& base) {
    auto created = LogDirectory::CreateNamed(base, "job");
    EXPECT_TRUE(created) << created.error().message;
    return std::move(*created);
  }

  test::TempFolder folder;
  test::ScopedVariable tmpdir{"TMPDIR", folder.path().c_str()};
};

TEST_F(LogDirectoryTest, ATemporaryOneIsPrivateAndInTmpdir) {
  LogDirectory directory = Temporary();
  EXPECT_THAT(directory.path(),
              testing::MatchesRegex(folder.path() + "/rankrun-[^/]{6}/job_[^/_]{8}"));
  EXPECT_EQ(ModeOf(directory.path()), 0700u);
  EXPECT_EQ(ModeOf(fs::path(directory.path()).parent_path()), 0700u);
}

TEST_F(LogDirectoryTest, ATemporaryOneIsRemovedWithAllThatIsInIt) {
  {
    LogDirectory directory = Temporary();
    ASSERT_TRUE(MakeFolders(directory.WorkerFolder(0, 0)));
    std::ofstream(directory.ErrorFile(0, 0)) << "{}";
  }
  EXPECT_EQ(EntriesIn(folder.path()), 0u);
}

TEST_F(LogDirectoryTest, AKeptFolderLosesItsEmptyFolders) {
  std::string file;
  {
    LogDirectory directory = Temporary();
    ASSERT_TRUE(MakeFolders(directory.WorkerFolder(0, 0)));
    ASSERT_TRUE(MakeFolders(directory.WorkerFolder(0, 1)));
    directory.Keep();
    file = directory.StderrFile(0, 1);
    std::ofstream(file) << "last words";
    LogDirectory moved = std::move(directory);
  }
  EXPECT_TRUE(fs::exists(file));
  fs::path attempt = fs::path(file).parent_path().parent_path();
  EXPECT_EQ(EntriesIn(attempt), 1u);
}

TEST_F(LogDirectoryTest, AnEmptyTemporaryFolderIsRemovedEvenIfKept) {
  {
    LogDirectory directory = Temporary();
    ASSERT_TRUE(MakeFolders(directory.WorkerFolder(0, 0)));
    directory.Keep();
  }
  EXPECT_EQ(EntriesIn(folder.path()), 0u);
}

TEST_F(LogDirectoryTest, ANamedFolderIsCreatedAndStays) {
  std::string base = folder.Path("logs/of/mine");
  std::string run;
  {
    LogDirectory directory = Named(base);
    run = directory.path();
    ASSERT_TRUE(MakeFolders(directory.WorkerFolder(0, 0)));
  }
  EXPECT_THAT(run, testing::MatchesRegex(base + "/job_[^/_]{8}"));
  EXPECT_EQ(ModeOf(run), 0700u);
  EXPECT_TRUE(fs::exists(run + "/attempt_0/0"));
  LogDirectory second = Named(base);
  EXPECT_NE(second.path(), run) << "a run does not overwrite another";
}

TEST_F(LogDirectoryTest, ANamedFolderThatCannotBeCreatedIsRefusedByTheFlagsName) {
  std::string file = folder.Write("file", "");
  auto created = LogDirectory::CreateNamed(file + "/logs", "job");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(created.error().message,
            "--log-dir " + file + "/logs: create the folder " + file + "/logs: Not a directory");
}

TEST_F(LogDirectoryTest, ARunIdIsASinglePathComponent) {
  auto created = LogDirectory::CreateNamed(folder.path(), "../../" + std::string(1000, 'x'));
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(fs::path(created->path()).parent_path(), folder.path());
}

TEST_F(LogDirectoryTest, EveryWorkerOfEveryAttemptHasItsOwnFiles) {
  LogDirectory directory = Temporary();
  EXPECT_EQ(directory.ErrorFile(1, 12), directory.path() + "/attempt_1/12/error.json");
  EXPECT_EQ(directory.StdoutFile(1, 12), directory.path() + "/attempt_1/12/stdout.log");
  EXPECT_EQ(directory.StderrFile(1, 12), directory.path() + "/attempt_1/12/stderr.log");
}

TEST_F(LogDirectoryTest, FilesOfAllWorkersMayShareTheFolderOfTheirAttempt) {
  auto shared = LogDirectory::CreateTemporary("job", LogDirectory::Layout::kFolderPerAttempt);
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(shared->WorkerFolder(2, 0), shared->AttemptFolder(2));
  EXPECT_EQ(shared->WorkerFolder(2, 1), shared->AttemptFolder(2));
  EXPECT_EQ(shared->ErrorFile(2, 11), shared->path() + "/attempt_2/11.error.json");
  EXPECT_EQ(shared->StderrFile(2, 1), shared->path() + "/attempt_2/1.stderr.log");
}

TEST_F(LogDirectoryTest, ATmpdirThatIsMissingIsReplacedByTmp) {
  test::ScopedVariable wrong("TMPDIR", "/no/such/folder");
  EXPECT_TRUE(Temporary().path().starts_with("/tmp/rankrun-"));
}

TEST_F(LogDirectoryTest, AnEmptyTmpdirMeansTmp) {
  test::ScopedVariable empty("TMPDIR", "");
  EXPECT_TRUE(Temporary().path().starts_with("/tmp/rankrun-"));
}

}  // namespace
}  // namespace rankrun::agent
