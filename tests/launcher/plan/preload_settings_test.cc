#include "launcher/plan/preload_settings.h"

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using Files = std::map<std::string, std::string>;

ResolvedProgram Python(const Words& words) {
  ResolvedProgram program{.program = {.file = "/usr/bin/python3", .arguments = words},
                          .is_python = true};
  program.program.arguments.insert(program.program.arguments.begin(), "python3");
  return program;
}

JobPlan Plan(const Settings& settings, const ResolvedProgram& program, const Files& files = {}) {
  JobPlan plan;
  auto read = ReadPreload(
      settings, program,
      [&files](const std::string& path) {
        auto file = files.find(path);
        return file == files.end() ? std::nullopt : std::optional(file->second);
      },
      plan);
  EXPECT_TRUE(read);
  return plan;
}

TEST(ImportsTorchTest, EachFormOfAnImportIsSeen) {
  for (const char* text :
       {"import torch", "import torch\n", "import os\nimport torch.nn as nn\n", "import os, torch",
        "  import\ttorch", "from torch import nn", "from torch.distributed import *",
        "import torch as t", "import torch; print()", "import torch\r\n", "import torch# x"}) {
    EXPECT_TRUE(ImportsTorch(text)) << text;
  }
}

TEST(ImportsTorchTest, OtherLinesAreNone) {
  for (const char* text : {"", "import torchvision", "# import torch", "important torch",
                           "from mytorch import torch", "print('import torch')", "importtorch",
                           "from . import torch", "import os.torch", "import"}) {
    EXPECT_FALSE(ImportsTorch(text)) << text;
  }
}

TEST(PreloadSettingTest, NoSettingIsNoPreloader) {
  EXPECT_FALSE(Plan(SettingsOf({}), Python({"train.py"})).spec.preload);
}

TEST(PreloadSettingTest, ModulesAreTaken) {
  auto plan = Plan(SettingsOf({"--preload=torch,numpy.random"}), Python({"-u", "-m", "train"}));
  ASSERT_TRUE(plan.spec.preload);
  EXPECT_EQ(plan.spec.preload->modules, "torch,numpy.random");
  EXPECT_EQ(plan.spec.preload->python_options, 1u);
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(PreloadSettingTest, AListOfOtherTextsIsRefused) {
  for (const std::string text : {"torch,", ",torch", "a b", "a..b", "1a", "a;b", "torch,a-b"}) {
    JobPlan plan;
    auto read = ReadPreload(SettingsOf({"--preload=" + text}), Python({"a.py"}), {}, plan);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(
        read.error().message,
        "--preload: want names of Python's modules, MODULE,..., or auto, got \"" + text + "\"");
  }
}

TEST(PreloadSettingTest, AutoIsForScriptsThatImportTorch) {
  const Settings settings = SettingsOf({"--preload=auto"});
  const Files files = {{"a.py", "import torch"},
                       {"b.py", "import os"},
                       {"c/d.py", "import torch"},
                       {"c/e/__main__.py", "from torch import nn"},
                       {"f/__main__.py", "import torch"}};
  for (const Words& words :
       {Words{"-u", "a.py"}, Words{"-m", "c.d"}, Words{"-m", "c.e"}, Words{"f"}}) {
    auto plan = Plan(settings, Python(words), files);
    ASSERT_TRUE(plan.spec.preload) << words.back();
    EXPECT_EQ(plan.spec.preload->modules, "torch,torch._dynamo");
  }
  for (const Words& words :
       {Words{"-u", "b.py"}, Words{"-m", "c"}, Words{"-c", "import torch"}, Words{"absent.py"}}) {
    auto plan = Plan(settings, Python(words), files);
    EXPECT_FALSE(plan.spec.preload) << words.back();
    EXPECT_EQ(plan.warnings,
              Words{"--preload has no effect: no line of the program's file imports torch"});
  }
}

TEST(PreloadSettingTest, ATypedFlagWithoutEffectIsALine) {
  const Settings settings = SettingsOf({"--preload=torch"});
  ResolvedProgram program{.program = {.file = "./a.out", .arguments = {"./a.out"}}};
  EXPECT_EQ(Plan(settings, program).warnings,
            Words{"--preload has no effect: ./a.out is not run by Python"});
  auto interactive = Plan(settings, Python({"-i", "a.py"}));
  EXPECT_EQ(interactive.warnings, Words{"--preload has no effect: it cannot be used with -i"});
  EXPECT_EQ(interactive.ignored,
            (std::vector<Note>{{"--preload torch", "it cannot be used with -i"}}));
}

TEST(PreloadSettingTest, AVariableIsForAllJobs) {
  auto source = SettingsOfVariables(RankrunFlags(kRankrun), kOurPrefix,
                                    EnvironmentOf({{"RANKRUN_PRELOAD", "torch"}}));
  ASSERT_TRUE(source);
  const std::vector<SettingsSource> sources = {*source};
  ResolvedProgram program{.program = {.file = "./a.out", .arguments = {"./a.out"}}};
  auto plan = Plan(Settings(RankrunFlags(kRankrun), sources), program);
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_EQ(plan.ignored,
            (std::vector<Note>{{"RANKRUN_PRELOAD torch", "./a.out is not run by Python"}}));
}

}  // namespace
}  // namespace rankrun::launcher
