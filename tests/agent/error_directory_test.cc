#include "agent/error_directory.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

struct ErrorDirectoryTest : testing::Test {
  std::optional<std::string> Read(std::string_view content) {
    return ReadErrorFile(folder.Write("error.json", content));
  }

  test::TempFolder folder;
  test::ScopedVariable tmpdir{"TMPDIR", folder.path().c_str()};
};

TEST_F(ErrorDirectoryTest, IsPrivateAndInTmpdir) {
  auto directory = ErrorDirectory::Create();
  ASSERT_TRUE(directory) << directory.error().message;
  EXPECT_TRUE(directory->path().starts_with(folder.path() + "/rankrun-"));
  struct stat status;
  ASSERT_EQ(stat(directory->path().c_str(), &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(ErrorDirectoryTest, IsRemovedWithAllThatIsInIt) {
  std::string path;
  {
    auto directory = ErrorDirectory::Create();
    ASSERT_TRUE(directory);
    path = directory->path();
    std::ofstream(directory->ErrorFile(0, 0)) << "{}";
    std::filesystem::create_directories(path + "/a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ErrorDirectoryTest, IsKeptOnRequest) {
  std::string path;
  {
    auto directory = ErrorDirectory::Create();
    ASSERT_TRUE(directory);
    path = directory->path();
    directory->Keep();
    std::ofstream(directory->StderrFile(0, 0)) << "last words";
    ErrorDirectory moved = std::move(*directory);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ErrorDirectoryTest, IsNotKeptWhenThereIsNothingInIt) {
  std::string path;
  {
    auto directory = ErrorDirectory::Create();
    ASSERT_TRUE(directory);
    path = directory->path();
    directory->Keep();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ErrorDirectoryTest, AMovedFromOneRemovesNothing) {
  auto directory = ErrorDirectory::Create();
  ASSERT_TRUE(directory);
  ErrorDirectory moved = std::move(*directory);
  {
    ErrorDirectory ends = std::move(*directory);  // owns nothing
  }
  EXPECT_TRUE(std::filesystem::exists(moved.path()));
}

TEST_F(ErrorDirectoryTest, EveryWorkerOfEveryAttemptHasItsOwnFiles) {
  auto directory = ErrorDirectory::Create();
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->ErrorFile(1, 2), directory->path() + "/attempt_1_local_rank_2.error.json");
  EXPECT_EQ(directory->StderrFile(1, 2), directory->path() + "/attempt_1_local_rank_2.stderr");
}

TEST_F(ErrorDirectoryTest, ATmpdirThatIsMissingIsAnErrorThatNamesIt) {
  test::ScopedVariable wrong("TMPDIR", "/no/such/folder");
  auto directory = ErrorDirectory::Create();
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(directory.error().message.starts_with("create the folder /no/such/folder/rankrun-"));
}

TEST_F(ErrorDirectoryTest, AnEmptyTmpdirMeansTmp) {
  test::ScopedVariable empty("TMPDIR", "");
  auto directory = ErrorDirectory::Create();
  ASSERT_TRUE(directory);
  EXPECT_TRUE(directory->path().starts_with("/tmp/rankrun-"));
}

// The file that @record writes.
TEST_F(ErrorDirectoryTest, ReadsTheFormOfRecord) {
  EXPECT_EQ(Read(R"({"message": {"message": "ValueError: no", "extraInfo":
                 {"py_callstack": "Traceback ...", "timestamp": "1700000000"}}})"),
            "ValueError: no");
}

// The same after a nested launcher has copied it.
TEST_F(ErrorDirectoryTest, ReadsTheFormWithAnErrorCode) {
  EXPECT_EQ(Read(R"({"message": {"message": "OSError: disk", "errorCode": 13,
                 "extraInfo": {"timestamp": "1700000000"}}})"),
            "OSError: disk");
}

TEST_F(ErrorDirectoryTest, ReadsTheFormOfAPlainText) {
  EXPECT_EQ(Read(R"({"message": "it broke\nbadly", "timestamp": 1700000000})"), "it broke\nbadly");
}

TEST_F(ErrorDirectoryTest, AnythingElseIsNothing) {
  for (const char* content :
       {"", "{", "null", "[]", "7", "\"text\"", "{}", R"({"message": 7})", R"({"message": null})",
        R"({"message": {}})", R"({"message": {"message": 7}})", R"({"message": ["a"]})",
        R"({"message": {"message": {"message": "deep"}}})", R"({"message": "cut)", "\xff\xfe",
        R"({"error": "other"})"}) {
    EXPECT_EQ(Read(content), std::nullopt) << content;
  }
  EXPECT_EQ(Read(std::string(100'000, '[')), std::nullopt);
  EXPECT_EQ(Read(std::string("{\"message\": \"\xff\"}")), std::nullopt) << "not UTF-8";
}

TEST_F(ErrorDirectoryTest, NoFileIsNothing) {
  EXPECT_EQ(ReadErrorFile(folder.Path("none")), std::nullopt);
  EXPECT_EQ(ReadErrorFile(folder.path()), std::nullopt);
  EXPECT_EQ(ReadErrorFile(""), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
