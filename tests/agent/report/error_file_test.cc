#include "agent/report/error_file.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

struct ErrorFileTest : testing::Test {
  std::optional<std::string> Read(std::string_view content) {
    return ReadErrorFile(folder.Write("error.json", content));
  }

  test::TempFolder folder;
};

// A file that @record writes.
TEST_F(ErrorFileTest, ReadsTheFormOfRecord) {
  EXPECT_EQ(Read(R"({"message": {"message": "ValueError: no", "extraInfo":
                 {"py_callstack": "Traceback ...", "timestamp": "1700000000"}}})"),
            "ValueError: no");
}

// The same file after a nested launcher has copied it.
TEST_F(ErrorFileTest, ReadsTheFormWithAnErrorCode) {
  EXPECT_EQ(Read(R"({"message": {"message": "OSError: disk", "errorCode": 13,
                 "extraInfo": {"timestamp": "1700000000"}}})"),
            "OSError: disk");
}

TEST_F(ErrorFileTest, ReadsTheFormOfAPlainText) {
  EXPECT_EQ(Read(R"({"message": "it broke\nbadly", "timestamp": 1700000000})"), "it broke\nbadly");
}

TEST_F(ErrorFileTest, AHugeFileIsIgnored) {
  EXPECT_EQ(Read("{\"message\": \"" + std::string(2 << 20, 'x') + "\"}"), std::nullopt);
  EXPECT_EQ(ReadErrorFile("/dev/zero"), std::nullopt);
}

TEST_F(ErrorFileTest, ADeepFileIsIgnored) {
  constexpr size_t kLevels = 450'000;
  std::string deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  for (const std::string& content :
       {"{\"message\": " + deep + "}", R"({"message": {"message": "E", "x": )" + deep + "}}",
        "{\"message\": " + std::string(kLevels, '['), deep}) {
    EXPECT_EQ(Read(content), std::nullopt);
    EXPECT_EQ(WithErrorCode(content, 3), std::nullopt);
  }
}

TEST_F(ErrorFileTest, AnOuterLauncherGetsTheErrorCode) {
  EXPECT_EQ(WithErrorCode(R"({"message":{"message":"E: no"}})", -9),
            R"({"message":{"errorCode":-9,"message":"E: no"}})");
  EXPECT_EQ(WithErrorCode(R"({"message": "text"})", 3), R"({"message": "text"})") << "unchanged";
  for (const char* odd : {"", "{", "[]", "{}", R"({"message": 7})", "\xff"}) {
    EXPECT_EQ(WithErrorCode(odd, 3), std::nullopt) << odd;
  }
}

TEST_F(ErrorFileTest, ACopyIsWrittenOnlyIfThereIsAnErrorFile) {
  std::string from = folder.Write("from", R"({"message":{"message":"E: no"}})");
  std::string to = folder.Path("to");
  EXPECT_TRUE(CopyErrorFile(folder.Path("none"), to, 1));
  EXPECT_FALSE(std::filesystem::exists(to));
  EXPECT_TRUE(CopyErrorFile(from, to, 1));
  EXPECT_EQ(ReadErrorFile(to), "E: no");
  auto failed = CopyErrorFile(from, "/no/such/file", 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "copy an error file to TORCHELASTIC_ERROR_FILE: /no/such/file: No such file or "
            "directory");
}

TEST_F(ErrorFileTest, AFileOfAnyOtherFormIsIgnored) {
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

TEST_F(ErrorFileTest, AMissingFileIsIgnored) {
  EXPECT_EQ(ReadErrorFile(folder.Path("none")), std::nullopt);
  EXPECT_EQ(ReadErrorFile(folder.path()), std::nullopt);
  EXPECT_EQ(ReadErrorFile(""), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
