#include "launcher/plan/program.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/support.h"

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

struct ProgramTest : testing::Test {
  ProgramTest() : before_(std::filesystem::current_path()) {
    std::filesystem::create_directories(folder.Path("work"));
    std::filesystem::current_path(folder.Path("work"));
    python = folder.Write("bin/python3", "#!/bin/sh\n", 0755);
    variables["PATH"] = folder.Path("other") + ":" + folder.Path("bin");
  }
  ~ProgramTest() override { std::filesystem::current_path(before_); }

  Result<agent::Program> Resolve(ProgramRequest request) {
    auto found = ResolveProgram(request, [this](const std::string& name) {
      auto variable = variables.find(name);
      return variable == variables.end() ? std::nullopt : std::optional(variable->second);
    });
    if (!found) return found.error();
    warning = found->warning;
    return found->program;
  }
  // Makes an environment with a Python and returns its folder.
  std::string Environment(const std::string& name) const {
    folder.Write(name + "/pyvenv.cfg", "");
    folder.Write(name + "/bin/python", "#!/bin/sh\n", 0755);
    return folder.Path(name);
  }
  std::string PythonFor(const std::string& started_as) {
    auto program = Resolve({.program = {"train.py"}, .started_as = started_as});
    return program ? program->file : program.error().message;
  }
  void ExpectRun(const ProgramRequest& request, const std::string& file, const Words& arguments) {
    auto program = Resolve(request);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(program->file, file);
    EXPECT_EQ(program->arguments, arguments);
  }
  void ExpectError(const ProgramRequest& request, ErrorCode code, const std::string& message) {
    auto program = Resolve(request);
    ASSERT_FALSE(program) << program->file;
    EXPECT_EQ(program.error().code, code);
    EXPECT_EQ(program.error().message, message);
  }
  std::string InWork(const std::string& name, mode_t mode) const {
    return folder.Write("work/" + name, "#!/bin/sh\n", mode);
  }

  test::TempFolder folder;
  std::string python;
  std::map<std::string, std::string> variables;
  std::string warning;  // of the last call

 private:
  std::filesystem::path before_;
};

TEST_F(ProgramTest, APythonFileRunsUnderPythonUnbuffered) {
  InWork("train.py", 0644);
  ExpectRun({.program = {"train.py", "--lr", "0.1"}}, python,
            {python, "-u", "./train.py", "--lr", "0.1"});
}

TEST_F(ProgramTest, APythonFileRunsUnderPythonThoughItIsExecutable) {
  InWork("train.py", 0755);
  ExpectRun({.program = {"./train.py"}}, python, {python, "-u", "./train.py"});
}

TEST_F(ProgramTest, AFileWithoutAnExecBitRunsUnderPython) {
  InWork("train", 0644);
  ExpectRun({.program = {"./train", "x"}}, python, {python, "-u", "./train", "x"});
}

TEST_F(ProgramTest, AnExecutableRunsItself) {
  InWork("train", 0755);
  ExpectRun({.program = {"./train", "x"}}, "./train", {"./train", "x"});
}

TEST_F(ProgramTest, ANameInTheCurrentFolderComesBeforePath) {
  InWork("train", 0755);
  folder.Write("bin/train", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"train", "x"}}, "./train", {"train", "x"});
}

TEST_F(ProgramTest, ANameIsLookedForInPath) {
  std::string tool = folder.Write("bin/tool", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"tool", "x"}}, tool, {"tool", "x"});
}

TEST_F(ProgramTest, TheFirstExecutableInPathCounts) {
  folder.Write("other/tool", "#!/bin/sh\n", 0644);  // no exec bit: not this one
  std::string tool = folder.Write("bin/tool", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"tool"}}, tool, {"tool"});
  std::string first = folder.Write("other/tool", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Resolve({.program = {"tool"}})->file, first);
}

TEST_F(ProgramTest, AFolderInPathIsNoProgram) {
  std::filesystem::create_directories(folder.Path("other/tool"));
  std::string tool = folder.Write("bin/tool", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"tool"}}, tool, {"tool"});
}

TEST_F(ProgramTest, AFolderOfThatNameDoesNotHideAProgramInPath) {
  std::filesystem::create_directories("tool");
  std::string tool = folder.Write("bin/tool", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"tool"}}, tool, {"tool"});
}

TEST_F(ProgramTest, AnEmptyPartOfPathIsTheCurrentFolder) {
  variables["PATH"] = ":" + folder.Path("bin");
  InWork("python3", 0755);
  InWork("train.py", 0644);
  EXPECT_EQ(Resolve({.program = {"train.py"}})->file, "./python3");
}

TEST_F(ProgramTest, WithoutPathTheStandardFoldersCount) {
  variables.erase("PATH");
  ExpectRun({.program = {"env"}}, "/usr/bin/env", {"env"});
}

TEST_F(ProgramTest, ErrorsNameThePlacesThatWereSearched) {
  ExpectError({.program = {"tool"}}, ErrorCode::kNotFound,
              "tool: no such file in the current folder, nor such a program in PATH");
}

TEST_F(ProgramTest, AMissingPathIsNotLookedForInPath) {
  folder.Write("bin/sub/tool", "#!/bin/sh\n", 0755);
  ExpectError({.program = {"sub/tool"}}, ErrorCode::kNotFound,
              "sub/tool: no such file: there is no folder sub");
}

TEST_F(ProgramTest, AFolderIsNoProgram) {
  std::filesystem::create_directories("package");
  ExpectError({.program = {"package"}}, ErrorCode::kInvalid, "package is a folder, want a program");
  ExpectError({.program = {"./package"}}, ErrorCode::kInvalid,
              "./package is a folder, want a program");
}

TEST_F(ProgramTest, NoPythonExecutesTheFileItself) {
  InWork("train.py", 0755);
  ExpectRun({.program = {"train.py", "x"}, .no_python = true}, "./train.py", {"train.py", "x"});
}

TEST_F(ProgramTest, NoPythonNeedsAnExecBit) {
  InWork("train.py", 0644);
  ExpectError({.program = {"train.py"}, .no_python = true}, ErrorCode::kInvalid,
              "train.py: has no exec permission, and --no-python forbids Python");
}

TEST_F(ProgramTest, AModuleIsNotLookedFor) {
  ExpectRun({.program = {"my.module", "-x"}, .module = true}, python,
            {python, "-u", "-m", "my.module", "-x"});
}

TEST_F(ProgramTest, PythonExecChoosesThePython) {
  InWork("train.py", 0644);
  variables["PYTHON_EXEC"] = "/bin/sh";
  ExpectRun({.program = {"train.py"}}, "/bin/sh", {"/bin/sh", "-u", "./train.py"});
  variables["PYTHON_EXEC"] = "/no/such/python";
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "PYTHON_EXEC is \"/no/such/python\": no such file: there is no folder /no");
  variables["PYTHON_EXEC"] = folder.Write("locked/python", "#!/bin/sh\n", 0644);
  ExpectError({.program = {"train.py"}}, ErrorCode::kInvalid,
              "PYTHON_EXEC is \"" + folder.Path("locked/python") + "\": no exec permission");
  variables["PYTHON_EXEC"] = folder.Path("locked");
  ExpectError({.program = {"train.py"}}, ErrorCode::kInvalid,
              "PYTHON_EXEC is \"" + folder.Path("locked") + "\": is a folder, want a program");
  variables["PYTHON_EXEC"] = "mypython";
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "PYTHON_EXEC is \"mypython\": not found in PATH");
  std::string mine = folder.Write("bin/mypython", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"train.py"}}, mine, {mine, "-u", "./train.py"});
}

TEST_F(ProgramTest, ThePathChoosesThePythonBeforeAVirtualEnvironment) {
  InWork("train.py", 0644);
  variables["VIRTUAL_ENV"] = Environment("venv");  // its activation put it into PATH, too
  variables["PATH"] = folder.Path("conda/bin") + ":" + folder.Path("venv/bin");
  EXPECT_EQ(PythonFor(""), folder.Path("venv/bin/python"));
  std::string conda = folder.Write("conda/bin/python3", "#!/bin/sh\n", 0755);
  EXPECT_EQ(PythonFor(""), conda) << "activated over the other one";
  EXPECT_EQ(warning, "");
  variables["PATH"] = folder.Path("other");
  EXPECT_EQ(PythonFor(""), folder.Path("venv/bin/python")) << "no other one";
  variables["PYTHON_EXEC"] = "/bin/sh";
  EXPECT_EQ(PythonFor(""), "/bin/sh");
}

TEST_F(ProgramTest, TheFirstFolderOfPathWithAnyPythonCounts) {
  InWork("train.py", 0644);
  std::string other = folder.Write("other/python", "#!/bin/sh\n", 0755);
  EXPECT_EQ(PythonFor(""), other);
  std::string newer = folder.Write("other/python3", "#!/bin/sh\n", 0755);
  EXPECT_EQ(PythonFor(""), newer);
}

TEST_F(ProgramTest, AStaleVirtualEnvironmentIsOneWarning) {
  InWork("train.py", 0644);
  variables["VIRTUAL_ENV"] = folder.Path("gone");
  EXPECT_EQ(PythonFor(""), python);
  std::string stale = "VIRTUAL_ENV is \"" + folder.Path("gone") + "\": it has no bin/python";
  EXPECT_EQ(warning, stale + "; using " + python);
  EXPECT_EQ(PythonFor(Environment("venv") + "/bin/torchrun"), folder.Path("venv/bin/python"));
  EXPECT_EQ(warning, "") << "it was not asked";
  variables["PATH"] = folder.Path("other");
  EXPECT_EQ(PythonFor(""), "no python3 or python in PATH, and " + stale +
                               " (set PYTHON_EXEC, or use --no-python)");
}

TEST_F(ProgramTest, ALinkInAnEnvironmentUsesThePythonBesideIt) {
  InWork("train.py", 0644);
  std::string link = folder.Write("venv/bin/torchrun", "", 0755);
  folder.Write("venv/bin/python", "#!/bin/sh\n", 0755);
  EXPECT_EQ(PythonFor(link), python) << "no environment: pyvenv.cfg is missing";
  std::string theirs = Environment("venv") + "/bin/python";
  EXPECT_EQ(PythonFor(link), theirs);
  EXPECT_EQ(PythonFor("torchrun"), python) << "not in PATH";
  variables["PATH"] += ":" + folder.Path("venv/bin");
  EXPECT_EQ(PythonFor("torchrun"), theirs);
  EXPECT_EQ(PythonFor(""), python);
  variables["VIRTUAL_ENV"] = Environment("active");
  variables["PATH"] = folder.Path("active/bin");
  EXPECT_EQ(PythonFor(link), theirs) << "the one that is called comes before the active one";
}

TEST_F(ProgramTest, LinksToAnEnvironmentAreFollowed) {
  InWork("train.py", 0644);
  std::string theirs = Environment("conda") + "/bin/python";
  folder.Write("conda/bin/rankrun", "", 0755);
  std::filesystem::create_directories(folder.Path("other"));
  std::filesystem::create_symlink("../conda/bin/rankrun", folder.Path("other/second"));
  std::filesystem::create_symlink("second", folder.Path("other/torchrun"));
  EXPECT_EQ(PythonFor(folder.Path("other/torchrun")), theirs);
  EXPECT_EQ(PythonFor("torchrun"), theirs);
  std::filesystem::create_symlink(folder.Path("other/torchrun"), folder.Path("conda/bin/link"));
  EXPECT_EQ(PythonFor(folder.Path("conda/bin/link")), theirs) << "the nearest one counts";
  std::filesystem::create_symlink("loop", folder.Path("other/loop"));
  EXPECT_EQ(PythonFor(folder.Path("other/loop")), python);
}

// pipx and uv install a tool into an environment of its own, and link it from a folder in PATH.
TEST_F(ProgramTest, TheActiveEnvironmentComesBeforeThatOfAToolBehindALink) {
  InWork("train.py", 0644);
  const std::string tool = Environment("tool") + "/bin/python";
  folder.Write("tool/bin/rankrun", "", 0755);
  std::filesystem::create_directories(folder.Path("other"));
  std::filesystem::create_symlink("../tool/bin/rankrun", folder.Path("other/rankrun"));
  EXPECT_EQ(PythonFor("rankrun"), tool);
  variables["VIRTUAL_ENV"] = Environment("active");
  EXPECT_EQ(PythonFor("rankrun"), folder.Path("active/bin/python"));
  EXPECT_EQ(PythonFor(folder.Path("tool/bin/rankrun")), tool) << "called in its environment";
  variables["VIRTUAL_ENV"] = folder.Path("removed");
  EXPECT_EQ(PythonFor("rankrun"), tool);
}

TEST_F(ProgramTest, AMissingPythonIsReported) {
  InWork("train.py", 0644);
  variables["PATH"] = folder.Path("other");
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "no python3 or python in PATH (set PYTHON_EXEC, or use --no-python)");
}

TEST_F(ProgramTest, AlwaysUnderPythonAsItIsNamed) {
  InWork("train", 0755);
  ExpectRun({.program = {"train", "x"}, .always_python = true}, python,
            {python, "-u", "train", "x"});
  std::filesystem::create_directories("package");
  ExpectRun({.program = {"package"}, .always_python = true}, python, {python, "-u", "package"});
  ExpectRun({.program = {"train"}, .no_python = true, .always_python = true}, "./train", {"train"});
  ExpectRun({.program = {"mod"}, .module = true, .always_python = true}, python,
            {python, "-u", "-m", "mod"});
  folder.Write("bin/tool", "#!/bin/sh\n", 0755);
  ExpectError({.program = {"tool"}, .always_python = true}, ErrorCode::kNotFound,
              "tool: no such file");
}

TEST_F(ProgramTest, ALinkIsWhatItPointsTo) {
  InWork("real", 0755);
  std::filesystem::create_symlink("real", "link");
  ExpectRun({.program = {"link"}}, "./link", {"link"});
  std::filesystem::create_symlink("nowhere", "broken");
  EXPECT_FALSE(Resolve({.program = {"./broken"}}));
}

}  // namespace
}  // namespace rankrun::launcher
