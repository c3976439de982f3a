#include "comm/launch/launch_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/base/support.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

struct LaunchCommandTest : testing::Test {
  std::vector<std::string> Command() const {
    auto words = CommandFor(spec, "/bin/rankrun");
    return words ? *words : std::vector<std::string>{words.error().message};
  }

  LaunchSpec spec{.program = {"train", "-x"}};
};

TEST_F(LaunchCommandTest, TheLeastIsWorkersRestartsAndWhatTheLibraryNeeds) {
  EXPECT_THAT(Command(), ElementsAre("/bin/rankrun", "--nproc-per-node=1", "--max-restarts=0",
                                     "--events=/dev/fd/3", "--lifeline=4", "--", "train", "-x"));
}

TEST_F(LaunchCommandTest, EachSettingIsAFlag) {
  spec.workers = 4;
  spec.max_restarts = 3;
  spec.shutdown_timeout = milliseconds(1'050);
  spec.save_timeout = milliseconds(300'000);
  spec.time_limit = milliseconds(60'000);
  spec.log_dir = "/logs";
  spec.flags = {"--master-port", "29500"};
  EXPECT_THAT(Command(),
              ElementsAre("/bin/rankrun", "--nproc-per-node=4", "--max-restarts=3",
                          "--shutdown-timeout=1.050", "--save-timeout=300.000", "--timeout=60.000",
                          "--log-dir=/logs", "--master-port", "29500", "--events=/dev/fd/3",
                          "--lifeline=4", "--", "train", "-x"));
}

TEST_F(LaunchCommandTest, ATimeOutIsAYearAtMost) {
  spec.shutdown_timeout = spec.save_timeout = spec.time_limit = milliseconds::max();
  EXPECT_THAT(Command(),
              AllOf(Contains("--shutdown-timeout=31536000.000"),
                    Contains("--save-timeout=31536000.000"), Contains("--timeout=31536000.000")));
}

TEST_F(LaunchCommandTest, AJobMayTakeAsLongToEndAsItsWorkersHaveAndThirtySeconds) {
  EXPECT_EQ(LongestEnd(spec), milliseconds(25'000 + 30'000));
  spec.save_timeout = milliseconds(300'000);
  EXPECT_EQ(LongestEnd(spec), milliseconds(300'000 + 30'000));
  spec.shutdown_timeout = milliseconds(400'000);
  EXPECT_EQ(LongestEnd(spec), milliseconds(400'000 + 30'000));
  spec.save_timeout = milliseconds::max();
  EXPECT_EQ(LongestEnd(spec), std::chrono::hours(24 * 365) + milliseconds(30'000));
}

TEST_F(LaunchCommandTest, WrongSettingsAreNamed) {
  spec.workers = 0;
  EXPECT_THAT(Command(), ElementsAre("LaunchSpec::workers is 0: want at least 1"));
  spec.workers = 1;
  spec.max_restarts = -1;
  EXPECT_THAT(Command(), ElementsAre("LaunchSpec::max_restarts is -1: want at least 0"));
  spec.max_restarts = 0;
  for (const char* flag : {"--events=x", "--events", "--lifeline=7", "--", "--save-timeout=300",
                           "--shutdown-timeout", "--shutdown_timeout=1", "--shutdown=1"}) {
    spec.flags = {flag};
    EXPECT_THAT(Command(), ElementsAre(HasSubstr(std::string("LaunchSpec::flags has ") + flag)));
  }
  spec.flags = {"--save-timeout=300"};
  EXPECT_THAT(Command(), ElementsAre("LaunchSpec::flags has --save-timeout=300: set "
                                     "LaunchSpec::save_timeout"));
  spec.flags.clear();
  spec.program.clear();
  EXPECT_THAT(Command(), ElementsAre("LaunchSpec::program is empty"));
}

TEST_F(LaunchCommandTest, TheEnvironmentIsTheCallersWithTheSpecsOverIt) {
  spec.environment = {{"A", "new"}, {"B", ""}};
  auto made = EnvironmentFor(spec, {"A=old", "AA=1", "odd"});
  ASSERT_TRUE(made);
  EXPECT_THAT(*made, UnorderedElementsAre("A=new", "B=", "AA=1", "odd"));
}

TEST_F(LaunchCommandTest, ANameWithAnEqualsSignIsRefused) {
  for (const char* name : {"", "A=B"}) {
    spec.environment = {{name, "1"}};
    auto made = EnvironmentFor(spec, {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message,
              "LaunchSpec::environment has \"" + std::string(name) + "\", which cannot be a name");
  }
}

TEST_F(LaunchCommandTest, TheExecutableIsTheTypedOneElseTheVariablesElseOurNeighbour) {
  test::TempFolder folder;
  std::string typed = folder.Write("typed", "", 0755);
  std::string variables = folder.Write("variables", "", 0755);
  {
    test::ScopedVariable variable("RANKRUN_EXECUTABLE", variables.c_str());
    EXPECT_EQ(*FindExecutable(spec), variables);
    spec.executable = typed;
    EXPECT_EQ(*FindExecutable(spec), typed);
  }
  spec.executable.clear();
  test::ScopedVariable none("RANKRUN_EXECUTABLE", nullptr);
  EXPECT_EQ(*FindExecutable(spec), test::Program("rankrun"));
}

// Otherwise rankrun would be searched in LaunchSpec::directory.
TEST_F(LaunchCommandTest, ARelativeExecutableIsThatOfTheCallersFolder) {
  test::TempFolder folder;
  std::string typed = folder.Write("typed", "", 0755);
  spec.executable = std::filesystem::relative(typed);
  std::string found = *FindExecutable(spec);
  EXPECT_THAT(found, StartsWith("/"));
  EXPECT_TRUE(std::filesystem::equivalent(found, typed)) << found;
}

TEST_F(LaunchCommandTest, AWrongExecutableIsAnErrorThatSaysWhereItCameFrom) {
  test::TempFolder folder;
  std::string plain = folder.Write("plain", "", 0644);
  spec.executable = plain;
  EXPECT_EQ(FindExecutable(spec).error().message,
            "LaunchSpec::executable is " + plain + ": no such executable file");
  spec.executable.clear();
  test::ScopedVariable variable("RANKRUN_EXECUTABLE", folder.path().c_str());
  EXPECT_EQ(FindExecutable(spec).error().message,
            "RANKRUN_EXECUTABLE is " + folder.path() + ": no such executable file");
}

}  // namespace
}  // namespace rankrun::comm
