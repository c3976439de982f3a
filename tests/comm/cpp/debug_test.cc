// The debug level of processes: its functions, the lines of the log, and the stack of
// an error.

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include <rankrun/diagnosis/debug.h>
#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "base/log.h"
#include "comm/core/debug_level.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kVariables[] = {"RANKRUN_LOG",
                                      "RANKRUN_DEBUG",
                                      "RANKRUN_SLOW_CALL_MS",
                                      "RANKRUN_BACKEND",
                                      "TORCH_DISTRIBUTED_DEBUG",
                                      "TORCH_CPP_LOG_LEVEL",
                                      "TORCH_SHOW_CPP_STACKTRACES"};

using Variables = std::map<std::string, std::string>;

void Use(const Variables& variables) {
  for (const char* name : kVariables) unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::string TextOf(DebugLevel level) { return std::to_string(static_cast<int>(level)); }

// Returns the text of `body` in a process with these variables.
std::string In(const Variables& variables, const std::function<std::string()>& body) {
  return ChildProcess([&] {
           Use(variables);
           std::string text;
           std::string error = ErrorOf([&] { text = body(); });
           return error == "no error" ? text : error;
         })
      .Text();
}

std::string CurrentLevel() { return TextOf(GetDebugLevel()); }

TEST(DebugTest, TheLevelIsThatOfTheVariables) {
  EXPECT_EQ(In({}, CurrentLevel), "0");
  EXPECT_EQ(In({{"TORCH_DISTRIBUTED_DEBUG", "Info"}}, CurrentLevel), "1");
  EXPECT_EQ(In({{"TORCH_DISTRIBUTED_DEBUG", "INFO"}, {"RANKRUN_DEBUG", "detail"}}, CurrentLevel),
            "2");
  EXPECT_EQ(In({{"RANKRUN_DEBUG", "ON"}}, CurrentLevel),
            "DistError: GetDebugLevel: RANKRUN_DEBUG is \"ON\": want OFF, INFO or DETAIL");
}

TEST(DebugTest, AProgramMaySetTheLevelOrReadItAgain) {
  auto text = In({{"RANKRUN_DEBUG", "INFO"}}, [] {
    std::string levels = CurrentLevel();
    SetDebugLevel(DebugLevel::kOff);
    levels += CurrentLevel();
    setenv("RANKRUN_DEBUG", "DETAIL", 1);
    levels += CurrentLevel();
    SetDebugLevelFromEnv();
    levels += CurrentLevel();
    setenv("RANKRUN_DEBUG", "loud", 1);
    levels += ErrorOf([] { SetDebugLevelFromEnv(); });
    return levels + "; " + CurrentLevel() +
           ErrorOf([] { SetDebugLevel(static_cast<DebugLevel>(3)); });
  });
  EXPECT_EQ(text,
            "1002DistError: SetDebugLevelFromEnv: RANKRUN_DEBUG is \"loud\": want OFF, INFO or "
            "DETAIL; 2DistError: SetDebugLevel: level is 3: want kOff, kInfo or kDetail");
}

TEST(DebugTest, InitReadsTheLevelUnlessTheProgramHasSetIt) {
  auto told = OnRanks(1, [] {
    Use({{"RANKRUN_DEBUG", "loud"}});
    std::string text = ErrorOf([] { Init(); });
    Use({{"RANKRUN_DEBUG", "INFO"}, {"RANKRUN_LOG", "off"}});
    Init();
    text += "; " + CurrentLevel();
    Destroy();
    SetDebugLevel(DebugLevel::kOff);
    Init();
    return text + CurrentLevel();
  });
  EXPECT_THAT(told,
              Each("DistError: Init: RANKRUN_DEBUG is \"loud\": want OFF, INFO or DETAIL; 10"));
}

TEST(DebugTest, TheCAbiHasTheSameLevel) {
  auto text = In({{"RANKRUN_DEBUG", "INFO"}}, [] {
    int level = -1;
    std::string statuses = std::to_string(rankrun_get_debug_level(&level));
    statuses += " " + std::to_string(level);
    statuses += " " + std::to_string(rankrun_set_debug_level(RANKRUN_DEBUG_DETAIL));
    statuses += " " + CurrentLevel();
    statuses += " " + std::to_string(rankrun_set_debug_level_from_env());
    statuses += " " + CurrentLevel();
    statuses += " " + std::to_string(rankrun_set_debug_level(7));
    return statuses + " " + rankrun_last_error();
  });
  EXPECT_EQ(text,
            "0 1 0 2 0 1 1 rankrun_set_debug_level: level is 7: want RANKRUN_DEBUG_OFF, "
            "RANKRUN_DEBUG_INFO or RANKRUN_DEBUG_DETAIL");
}

TEST(DebugTest, DetailOnSomeRanksOnlyIsAMismatch) {
  auto told = OnRanks(2, [](int rank) {
    Use({{"RANKRUN_DEBUG", rank == 0 ? "DETAIL" : "INFO"}, {"RANKRUN_LOG", "off"}});
    Init();
    return std::string("no error");
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Init: "),
                               HasSubstr("debug level DETAIL"), HasSubstr("rank 1"))));
}

TEST(DebugTest, GroupsMadeAtDetailCompareEachCall) {
  auto told = OnRanks(2, [] {
    Use({{"RANKRUN_LOG", "off"}});
    Init({.backend = "tcp"});
    SetDebugLevel(DebugLevel::kDetail);
    ProcessGroup& group = NewGroup({});
    std::vector<float> data(10);
    // Without the comparison, the error would be that of the barrier.
    return ErrorOf([&] {
      group.Broadcast(data, GlobalRank{group.global_rank()});
      group.Barrier();
    });
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Broadcast #1"),
                               HasSubstr("rank 1 called Broadcast #1"))));
}

struct StackTest : testing::TestWithParam<const char*> {
  // Returns the errors of two ranks whose calls differ.
  static std::vector<std::string> ErrorsWith(const Variables& variables, const CallOptions& how) {
    return OnRanks(2, [&](int rank) {
      Use(variables);
      setenv("RANKRUN_LOG", "off", 1);
      ProcessGroup& world = Init({.backend = GetParam()});
      std::vector<float> data(rank == 0 ? 10 : 20);
      return ErrorOf([&] { world.AllReduce(data, ReduceOp::kSum, how).Wait(); });
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, StackTest, testing::Values("shm", "tcp", "gloo"), NameOfBackend);

TEST_P(StackTest, AMismatchShowsTheStackOfTheCall) {
  const Variables shown{{"RANKRUN_DEBUG", "DETAIL"}, {"TORCH_SHOW_CPP_STACKTRACES", "1"}};
  for (const CallOptions& how : {CallOptions(), CallOptions(kAsync)}) {
    EXPECT_THAT(ErrorsWith(shown, how),
                Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                           HasSubstr("rank 1 called AllReduce #1 (20 x float32, sum)"),
                           HasSubstr("\nstack of this rank's call, innermost frame first:\n#0 "),
                           HasSubstr("comm_tests+0x"), HasSubstr("__libc_start_main"),
                           HasSubstr("\nlink the program with -rdynamic for the names of"))));
  }
}

TEST_P(StackTest, OnlyWithBothVariables) {
  auto one_line = Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"), Not(HasSubstr("\n"))));
  EXPECT_THAT(ErrorsWith({{"RANKRUN_DEBUG", "DETAIL"}}, {}), one_line);
  EXPECT_THAT(ErrorsWith({{"RANKRUN_DEBUG", "INFO"}, {"TORCH_SHOW_CPP_STACKTRACES", "1"}}, {}),
              one_line);
}

// The level of the log is read once per process, so each case has a process of its own.
struct DebugLogDeathTest : testing::Test {
  DebugLogDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Two ranks make a world and a group, use both, and log an error.
  [[noreturn]] static void RunWith(const Variables& variables) {
    Use(variables);
    auto told = OnRanks(2, [] {
      ProcessGroup& world = Init();
      ProcessGroup& group = NewGroup({.ranks = {1}, .description = "part"});
      for (int i = 0; i < 2; ++i) world.Barrier();
      group.Barrier();  // a warning on rank 0
      Destroy();
      LogError("the end of " + std::string(getenv("RANK")));
      return std::string("done");
    });
    _exit(told == std::vector<std::string>{"done", "done"} ? 0 : 1);
  }

  // Matches the output of a log of this level: it has the lines of this and of all
  // higher levels, and of no lower one.
  static testing::Matcher<const std::string&> IsAtLevel(const std::string& level) {
    const std::string of_rank = "the world process group, rank 1 of 2: ";
    const std::vector<std::pair<std::string, std::string>> lines{
        {"trace", of_rank + "Barrier #2 begins\n"},
        {"debug", of_rank + "made in "},
        {"info", of_rank + "backend shm, as all ranks are on one host\n"},
        {"warning", "Barrier of process group \"part\": does nothing here, as rank 0 is no member"},
        {"error", "the end of 1\n"}};
    std::vector<testing::Matcher<const std::string&>> all;
    bool is_shown = false;
    for (const auto& [name, text] : lines) {
      is_shown = is_shown || name == level;
      auto has = HasSubstr("rankrun: " + name + ": " + text);
      auto has_none = Not(HasSubstr("rankrun: " + name + ": "));
      all.emplace_back(is_shown ? testing::Matcher<const std::string&>(has) : has_none);
    }
    return testing::AllOfArray(all);
  }
};

TEST_F(DebugLogDeathTest, ErrorHidesTheDebugLevel) {
  for (const char* debug : {"OFF", "INFO", "DETAIL"}) {
    EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "ERROR"}, {"TORCH_DISTRIBUTED_DEBUG", debug}}),
                ExitedWithCode(0), IsAtLevel("error"));
  }
}

TEST_F(DebugLogDeathTest, WarningHidesTheDebugLevel) {
  for (const char* debug : {"OFF", "INFO", "DETAIL"}) {
    EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "WARNING"}, {"TORCH_DISTRIBUTED_DEBUG", debug}}),
                ExitedWithCode(0), IsAtLevel("warning"));
  }
}

TEST_F(DebugLogDeathTest, InfoAndOffShowInfo) {
  EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "INFO"}}), ExitedWithCode(0), IsAtLevel("info"));
  EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "INFO"}, {"TORCH_DISTRIBUTED_DEBUG", "OFF"}}),
              ExitedWithCode(0), IsAtLevel("info"));
}

TEST_F(DebugLogDeathTest, InfoAndInfoShowDebug) {
  EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "INFO"}, {"TORCH_DISTRIBUTED_DEBUG", "INFO"}}),
              ExitedWithCode(0), IsAtLevel("debug"));
}

TEST_F(DebugLogDeathTest, InfoAndDetailShowTrace) {
  EXPECT_EXIT(RunWith({{"TORCH_CPP_LOG_LEVEL", "INFO"}, {"TORCH_DISTRIBUTED_DEBUG", "DETAIL"}}),
              ExitedWithCode(0), IsAtLevel("trace"));
}

TEST_F(DebugLogDeathTest, TheDebugLevelAloneIsEnough) {
  EXPECT_EXIT(RunWith({}), ExitedWithCode(0), IsAtLevel("warning"));
  EXPECT_EXIT(RunWith({{"RANKRUN_DEBUG", "INFO"}}), ExitedWithCode(0), IsAtLevel("debug"));
  EXPECT_EXIT(RunWith({{"RANKRUN_DEBUG", "DETAIL"}}), ExitedWithCode(0), IsAtLevel("trace"));
}

TEST_F(DebugLogDeathTest, OurOwnLogLevelWins) {
  EXPECT_EXIT(
      RunWith(
          {{"RANKRUN_LOG", "info"}, {"TORCH_CPP_LOG_LEVEL", "ERROR"}, {"RANKRUN_DEBUG", "DETAIL"}}),
      ExitedWithCode(0), IsAtLevel("info"));
  EXPECT_EXIT(RunWith({{"RANKRUN_LOG", "error"}, {"RANKRUN_DEBUG", "DETAIL"}}), ExitedWithCode(0),
              IsAtLevel("error"));
}

TEST_F(DebugLogDeathTest, WrongValuesOfTorchsOtherVariablesAreWarnings) {
  EXPECT_EXIT(
      RunWith({{"TORCH_CPP_LOG_LEVEL", "debug"},
               {"TORCH_SHOW_CPP_STACKTRACES", "yes"},
               {"RANKRUN_DEBUG", "DETAIL"}}),
      ExitedWithCode(0),
      AllOf(HasSubstr("rankrun: warning: TORCH_CPP_LOG_LEVEL is \"debug\": want INFO, WARNING, "
                      "ERROR or FATAL, or 0, 1, 2 or 3; WARNING is used\n"),
            HasSubstr("rankrun: warning: TORCH_SHOW_CPP_STACKTRACES is \"yes\": want 0 or 1; "
                      "0 is used\n"),
            IsAtLevel("warning")));
}

TEST_F(DebugLogDeathTest, AValueThatOurOwnLogLevelOverridesIsNoWarning) {
  EXPECT_EXIT(RunWith({{"RANKRUN_LOG", "warn"}, {"TORCH_CPP_LOG_LEVEL", "debug"}}),
              ExitedWithCode(0), Not(HasSubstr("TORCH_CPP_LOG_LEVEL")));
}

TEST_F(DebugLogDeathTest, ReadingTheLevelAgainReadsAllVariables) {
  auto run = [] {
    Use({{"RANKRUN_DEBUG", "DETAIL"}, {"TORCH_CPP_LOG_LEVEL", "ERROR"}});
    SetDebugLevelFromEnv();
    LogWarn("hidden");
    Use({{"RANKRUN_DEBUG", "DETAIL"},
         {"TORCH_CPP_LOG_LEVEL", "WARNING"},
         {"TORCH_SHOW_CPP_STACKTRACES", "1"}});
    SetDebugLevelFromEnv();
    LogWarn(ShowsStacks() ? "shown" : "without stacks");
    _exit(0);
  };
  EXPECT_EXIT(run(), ExitedWithCode(0),
              AllOf(HasSubstr("rankrun: warning: shown\n"), Not(HasSubstr("hidden"))));
}

TEST_F(DebugLogDeathTest, GroupsAndFirstCallsAreDescribed) {
  const std::string world = "rankrun: debug: the world process group, rank 0 of 2: ";
  const std::string part = "rankrun: debug: process group \"part\", global rank 1 .0 of 1.: ";
  const std::string took = "[0-9]+[.][0-9]+ ms";
  auto has = [](const std::string& regex) { return testing::ContainsRegex(regex + "\n"); };
  EXPECT_EXIT(RunWith({{"RANKRUN_DEBUG", "INFO"}, {"RANKRUN_SLOW_CALL_MS", "3600000"}}),
              ExitedWithCode(0),
              AllOf(has(world + "made in " + took +
                        ": name \"world\", backend shm, global ranks 0, 1, time-out 1800.0 s"),
                    has(part + "made in " + took +
                        ": name \"group_.*\", backend shm, global rank 1, time-out 1800.0 s"),
                    has(world + "Barrier #1, the first collective, took " + took),
                    Not(HasSubstr("Barrier #2")),  //
                    has(world + "destroyed after 2 collectives"),
                    has(part + "destroyed after 1 collective")));
}

TEST_F(DebugLogDeathTest, ASlowCallIsNamed) {
  const std::string world = "rankrun: info: the world process group, rank 1 of 2: Barrier #2";
  const std::string text = " took [0-9.]+ ms, which is slow .0 ms or more, RANKRUN_SLOW_CALL_MS.\n";
  EXPECT_EXIT(RunWith({{"RANKRUN_DEBUG", "INFO"}, {"RANKRUN_SLOW_CALL_MS", "0"}}),
              ExitedWithCode(0), testing::ContainsRegex(world + text));
}

}  // namespace
}  // namespace rankrun::comm
