#include "launcher/flags/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "launcher/flags/flags.h"
#include "tests/base/support.h"

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

// Returns the output of a shell command, by lines.
Words OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return {};
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  std::istringstream lines(text);
  Words found;
  for (std::string line; std::getline(lines, line);) found.push_back(line);
  return found;
}

bool IsInstalled(const std::string& shell) {
  return std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) == 0;
}

struct CompletionTest : testing::Test {
  std::string ScriptFile(const std::string& shell) const {
    return folder.Write("script", CompletionScript(RankrunFlags(), shell));
  }

  // Returns the offers of bash for the last of `words`. The words are split as
  // bash splits them.
  Words Offered(const Words& words) const {
    std::string text = "cd " + folder.path() + "\n. ./script\nCOMP_WORDS=(rankrun";
    for (const std::string& word : words) text += " '" + word + "'";
    text += ")\nCOMP_CWORD=" + std::to_string(words.size()) +
            "\n_rankrun\n[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    ScriptFile("bash");
    return OutputOf("bash " + folder.Write("test", text));
  }

  test::TempFolder folder;
};

TEST_F(CompletionTest, EachShellParsesItsScript) {
  for (std::string shell : {"bash", "zsh", "fish", "tcsh"}) {
    if (!IsInstalled(shell)) continue;
    EXPECT_EQ(OutputOf(shell + " -n " + ScriptFile(shell) + " 2>&1"), Words{}) << shell;
  }
}

TEST_F(CompletionTest, EveryScriptHasEveryFlag) {
  for (const Flag& flag : Flags()) {
    std::string name(flag.name);
    EXPECT_NE(CompletionScript(RankrunFlags(), "bash").find("--" + name), std::string::npos);
    EXPECT_NE(CompletionScript(RankrunFlags(), "zsh").find("--" + name), std::string::npos) << name;
    EXPECT_NE(CompletionScript(RankrunFlags(), "fish").find(" -l " + name + " "), std::string::npos)
        << name;
    const std::string tcsh = CompletionScript(RankrunFlags(), "tcsh");
    EXPECT_NE(tcsh.substr(tcsh.find("'c/--/(")).find(name), std::string::npos) << name;
  }
}

TEST_F(CompletionTest, TcshCompletesTheValuesOfFlags) {
  const std::string script = CompletionScript(RankrunFlags(), "tcsh");
  for (const char* rule : {"'n/--on-lost-node/(restart stop)/'", "'n/--log-dir/d/'",
                           "'n/--secret-file/f/'", "'n/-r/(0 1 2 3)/'", "'n/--nnodes/x/'"}) {
    EXPECT_NE(script.find(rule), std::string::npos) << rule;
  }
}

TEST_F(CompletionTest, BashCompletesAFlag) {
  EXPECT_EQ(Offered({"--nproc"}), Words{"--nproc-per-node"});
  EXPECT_EQ(Offered({"-n", "4", "--max"}), Words{"--max-restarts"});
  EXPECT_EQ(Offered({"--standalone", "--log"}),
            (Words{"--log-line-prefix-template", "--log-dir", "--log-limit", "--logs-specs"}));
}

TEST_F(CompletionTest, BashCompletesTheValueOfAFlag) {
  EXPECT_EQ(Offered({"--bind", "n"}), (Words{"none", "numa"}));
  EXPECT_EQ(Offered({"--bind", "=", "c"}), Words{"core"});
  EXPECT_EQ(Offered({"--start_method", "fork"}), (Words{"fork", "forkserver"}));
  EXPECT_EQ(Offered({"-t", ""}), (Words{"0", "1", "2", "3"}));
  EXPECT_EQ(Offered({"--bind", "="}), (Words{"none", "core", "numa", "socket"}));
  EXPECT_EQ(Offered({"--role", "x"}), Words{});
}

TEST_F(CompletionTest, BashCompletesFilesAndFolders) {
  folder.Write("job.json", "{}");
  folder.Write("jobs/x", "");
  EXPECT_EQ(Offered({"--config", "job"}).size(), 2U);
  EXPECT_EQ(Offered({"--log-dir", "job"}), Words{"jobs"});
  Words programs = Offered({"-n", "2", "--tee", "0", ":", "3", "job.j"});
  EXPECT_EQ(std::ranges::count(programs, "job.json"), 1);
}

TEST_F(CompletionTest, BashFindsTheProgramAfterSplitValues) {
  for (const Words& before :
       {Words{"-x", "A", "=", "1"}, Words{"--env", "=", "A", "=", "1"},
        Words{"--rdzv-endpoint", "=", "[", "::", "1]", ":", "29400"}, Words{"-mn", "2"},
        Words{"--max-r", "3"}, Words{"--nproc_p", "=", "2"}}) {
    Words words = before;
    words.insert(words.end(), {"--bind", "c"});
    EXPECT_EQ(Offered(words), Words{"core"}) << before[0];
  }
  EXPECT_EQ(Offered({"-n4", "train.py", "--bind", "c"}), Words{});
}

TEST_F(CompletionTest, ArgumentsOfTheProgramAreNotCompleted) {
  EXPECT_EQ(Offered({"train.py", "--n"}), Words{});
  EXPECT_EQ(Offered({"-n", "4", "train.py", "--config", "n"}), Words{});
}

}  // namespace
}  // namespace rankrun::launcher
