#include "agent/preload/python_command.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using Words = std::vector<std::string>;

struct Case {
  Words arguments;
  size_t options;
};

TEST(PythonCommandTest, TheProgramFollowsTheOptions) {
  const std::vector<Case> cases = {
      {{"python", "train.py"}, 0},
      {{"python", "-u", "train.py", "-u", "-x"}, 1},
      {{"python", "-u", "-m", "train"}, 1},
      {{"python", "-m", "train", "--lr", "1"}, 0},
      {{"python", "-c", "print(1)"}, 0},
      {{"python", "-uB", "-OO", "train.py"}, 2},
      {{"python", "-W", "ignore", "train.py"}, 2},
      {{"python", "-Wignore", "train.py"}, 1},
      {{"python", "-X", "dev", "-Ximporttime", "-m", "train"}, 3},
      {{"python", "-uX", "dev", "train.py"}, 2},
      {{"python", "-uWm", "train.py"}, 1},
      {{"python", "--check-hash-based-pycs", "never", "train.py"}, 2},
      {{"python", "./-m"}, 0},
  };
  for (const Case& each : cases) {
    auto options = CountPythonOptions(each.arguments);
    ASSERT_TRUE(options) << each.arguments.back() << ": " << options.error().message;
    EXPECT_EQ(*options, each.options) << each.arguments.back();
  }
}

struct Refused {
  Words arguments;
  std::string why;
};

TEST(PythonCommandTest, AnythingElseIsNoProgram) {
  const std::vector<Refused> cases = {
      {{"python"}, "no program is given to Python"},
      {{}, "no program is given to Python"},
      {{"python", "-u"}, "no program is given to Python"},
      {{"python", "-W"}, "no program is given to Python"},
      {{"python", "-W", "ignore"}, "no program is given to Python"},
      {{"python", "-"}, "the program is on standard input"},
      {{"python", "-m"}, "-m has no value"},
      {{"python", "-u", "-c"}, "-c has no value"},
      {{"python", "-i", "train.py"}, "it cannot be used with -i"},
      {{"python", "-ui", "train.py"}, "it cannot be used with -ui"},
      {{"python", "-um", "train"}, "it cannot be used with -um"},
      {{"python", "-mtrain"}, "it cannot be used with -mtrain"},
      {{"python", "--version"}, "it cannot be used with --version"},
      {{"python", "-x", "train.py"}, "it cannot be used with -x"},
  };
  for (const Refused& each : cases) {
    auto options = CountPythonOptions(each.arguments);
    ASSERT_FALSE(options) << each.why;
    EXPECT_EQ(options.error().message, each.why);
  }
}

}  // namespace
}  // namespace rankrun::agent
