#include "comm/core/debug_level.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rankrun::comm {
namespace {

struct DebugLevelTest : testing::Test {
  const GetVariable get = [this](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };

  // Returns the level of the log with this value of TORCH_CPP_LOG_LEVEL.
  LogLevel LogLevelWith(const std::string& value, DebugLevel level) {
    variables["TORCH_CPP_LOG_LEVEL"] = value;
    auto result = LogLevelIn(get, level);
    EXPECT_TRUE(result) << value;
    return result ? *result : LogLevel::kOff;
  }
  template <typename T>
  static std::string ErrorOf(const Result<T>& result) {
    if (result) return "no error";
    EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
    return result.error().message;
  }

  std::map<std::string, std::string> variables;
};

TEST_F(DebugLevelTest, IsOffWithoutAVariable) {
  EXPECT_EQ(*DebugLevelIn(get), DebugLevel::kOff);
  variables["RANKRUN_DEBUG"] = "";
  variables["TORCH_DISTRIBUTED_DEBUG"] = "";
  EXPECT_EQ(*DebugLevelIn(get), DebugLevel::kOff);
}

TEST_F(DebugLevelTest, MayHaveTorchsName) {
  variables["TORCH_DISTRIBUTED_DEBUG"] = "detail";
  EXPECT_EQ(*DebugLevelIn(get), DebugLevel::kDetail);
  variables["RANKRUN_DEBUG"] = "Info";  // overrides torch's
  EXPECT_EQ(*DebugLevelIn(get), DebugLevel::kInfo);
  variables["RANKRUN_DEBUG"] = "OFF";
  EXPECT_EQ(*DebugLevelIn(get), DebugLevel::kOff);
}

TEST_F(DebugLevelTest, AnErrorNamesTheVariableAndTheLevels) {
  variables["TORCH_DISTRIBUTED_DEBUG"] = "verbose";
  EXPECT_EQ(ErrorOf(DebugLevelIn(get)),
            "TORCH_DISTRIBUTED_DEBUG is \"verbose\": want OFF, INFO or DETAIL");
  variables["RANKRUN_DEBUG"] = "1";
  EXPECT_EQ(ErrorOf(DebugLevelIn(get)), "RANKRUN_DEBUG is \"1\": want OFF, INFO or DETAIL");
}

TEST_F(DebugLevelTest, TheLogFollowsBothVariables) {
  for (auto level : {DebugLevel::kOff, DebugLevel::kInfo, DebugLevel::kDetail}) {
    for (const char* error : {"ERROR", "error", "2", "FATAL", "3"}) {
      EXPECT_EQ(LogLevelWith(error, level), LogLevel::kError);
    }
    for (const char* warning : {"WARNING", "1"}) {
      EXPECT_EQ(LogLevelWith(warning, level), LogLevel::kWarn);
    }
  }
  for (const char* info : {"INFO", "0"}) {
    EXPECT_EQ(LogLevelWith(info, DebugLevel::kOff), LogLevel::kInfo);
    EXPECT_EQ(LogLevelWith(info, DebugLevel::kInfo), LogLevel::kDebug);
    EXPECT_EQ(LogLevelWith(info, DebugLevel::kDetail), LogLevel::kTrace);
  }
  EXPECT_EQ(LogLevelWith("", DebugLevel::kOff), LogLevel::kWarn);
  EXPECT_EQ(LogLevelWith("", DebugLevel::kInfo), LogLevel::kDebug);
  EXPECT_EQ(LogLevelWith("", DebugLevel::kDetail), LogLevel::kTrace);
}

TEST_F(DebugLevelTest, AWrongLevelOfTheLogIsNamed) {
  variables["TORCH_CPP_LOG_LEVEL"] = "debug";
  EXPECT_EQ(ErrorOf(LogLevelIn(get, DebugLevel::kOff)),
            "TORCH_CPP_LOG_LEVEL is \"debug\": want INFO, WARNING, ERROR or FATAL, or 0, 1, 2 or "
            "3");
}

TEST_F(DebugLevelTest, StacksAreShownByZeroOrOne) {
  EXPECT_FALSE(*ShowsStacksIn(get));
  variables["TORCH_SHOW_CPP_STACKTRACES"] = "0";
  EXPECT_FALSE(*ShowsStacksIn(get));
  variables["TORCH_SHOW_CPP_STACKTRACES"] = "1";
  EXPECT_TRUE(*ShowsStacksIn(get));
  variables["TORCH_SHOW_CPP_STACKTRACES"] = "yes";
  EXPECT_EQ(ErrorOf(ShowsStacksIn(get)), "TORCH_SHOW_CPP_STACKTRACES is \"yes\": want 0 or 1");
}

}  // namespace
}  // namespace rankrun::comm
