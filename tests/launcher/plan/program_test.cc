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
    return ResolveProgram(request, [this](const std::string& name) -> std::optional<std::string> {
      auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
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
              "PYTHON_EXEC is \"/no/such/python\": no such program");
  variables["PYTHON_EXEC"] = "mypython";
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "PYTHON_EXEC is \"mypython\": not found in PATH");
  std::string mine = folder.Write("bin/mypython", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"train.py"}}, mine, {mine, "-u", "./train.py"});
}

TEST_F(ProgramTest, AVirtualEnvironmentChoosesThePython) {
  InWork("train.py", 0644);
  variables["VIRTUAL_ENV"] = folder.Path("venv");
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "VIRTUAL_ENV is \"" + folder.Path("venv") + "\": it has no bin/python");
  std::string theirs = folder.Write("venv/bin/python", "#!/bin/sh\n", 0755);
  ExpectRun({.program = {"train.py"}}, theirs, {theirs, "-u", "./train.py"});
  variables["PYTHON_EXEC"] = "/bin/sh";
  EXPECT_EQ(Resolve({.program = {"train.py"}})->file, "/bin/sh");
}

TEST_F(ProgramTest, ALinkInAVirtualEnvironmentUsesThePythonBesideIt) {
  InWork("train.py", 0644);
  std::string link = folder.Write("venv/bin/torchrun", "", 0755);
  std::string theirs = folder.Write("venv/bin/python", "#!/bin/sh\n", 0755);
  auto interpreter = [&](const std::string& started_as) {
    return Resolve({.program = {"train.py"}, .started_as = started_as})->file;
  };
  EXPECT_EQ(interpreter(link), python) << "no environment: pyvenv.cfg is missing";
  folder.Write("venv/pyvenv.cfg", "");
  EXPECT_EQ(interpreter(link), theirs);
  EXPECT_EQ(interpreter("torchrun"), python) << "not in PATH";
  variables["PATH"] += ":" + folder.Path("venv/bin");
  EXPECT_EQ(interpreter("torchrun"), theirs);
  EXPECT_EQ(interpreter(""), python);
  folder.Write("other_venv/bin/python", "#!/bin/sh\n", 0755);
  variables["VIRTUAL_ENV"] = folder.Path("other_venv");
  EXPECT_EQ(interpreter(link), folder.Path("other_venv/bin/python"));
}

TEST_F(ProgramTest, AMissingPythonIsReported) {
  InWork("train.py", 0644);
  variables["PATH"] = folder.Path("other");
  ExpectError({.program = {"train.py"}}, ErrorCode::kNotFound,
              "no python3 in PATH (set PYTHON_EXEC, or use --no-python)");
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
