#include "launcher/torchrun_entry.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/base/support.h"

namespace rankrun::launcher {
namespace {

constexpr char kPytorchs[] = "#!/usr/bin/python3\nfrom torch.distributed.run import main\nmain()\n";

// A folder with programs of a Python environment, in which `rankrun` prints how it was started.
class TorchrunEntryTest : public ::testing::Test {
 protected:
  TorchrunEntryTest() {
    Write("rankrun", "#!/bin/sh\necho \"python=$PYTHON_EXEC\" \"$@\"\n");
    unsetenv("PYTHON_EXEC");
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }

  void Write(const std::string& name, const std::string& text) const {
    folder_.Write(name, text, 0755);
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  // Returns what a shell command in the folder prints.
  std::string OutputOf(const std::string& command) const {
    const std::string into = Path("output");
    const std::string line = "cd " + folder_.path() + " && " + command + " >" + into + " 2>&1";
    return std::system(line.c_str()) == 0 ? Read("output") : "failed: " + Read("output");
  }

  Result<std::string> Install() const { return InstallTorchrun(folder_.path(), Path("rankrun")); }
  Result<std::string> Uninstall() const { return UninstallTorchrun(folder_.path()); }

  test::TempFolder folder_;
};

TEST_F(TorchrunEntryTest, StartsRankrunWithTheArguments) {
  Write("torchrun", kPytorchs);
  auto done = Install();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, Path("torchrun") + " starts " + Path("rankrun") + "; PyTorch's is " +
                       Path("torchrun-pytorch"));
  EXPECT_EQ(OutputOf("./torchrun -n 2 'a b' '*'"), "python= --as-torchrun -n 2 a b *\n");
  EXPECT_EQ(OutputOf("PATH=.:$PATH torchrun"), "python= --as-torchrun\n");
  EXPECT_EQ(Read("torchrun-pytorch"), kPytorchs);
}

TEST_F(TorchrunEntryTest, PythonThatRunsItIsThatOfTheWorkers) {
  ASSERT_TRUE(Install());
  const std::string output = OutputOf("python3 ./torchrun -n 2 'a b'");
  EXPECT_TRUE(output.starts_with("python=/")) << output;
  EXPECT_TRUE(output.ends_with(" --as-torchrun -n 2 a b\n")) << output;
  EXPECT_EQ(OutputOf("PYTHON_EXEC=mine python3 torchrun"), "python=mine --as-torchrun\n");
  EXPECT_EQ(
      OutputOf("PYTHON_EXEC=mine python3 -c 'import runpy, sys; sys.argv = [\"torchrun\", \"x\"];"
               "runpy.run_path(\"torchrun\", run_name=\"__main__\")'"),
      "python=mine --as-torchrun x\n");
}

TEST_F(TorchrunEntryTest, WithoutRankrunPytorchsIsStarted) {
  Write("torchrun", "#!/bin/sh\n# torch.distributed.run\necho \"pytorch's $1\"\n");
  ASSERT_TRUE(Install());
  ASSERT_TRUE(std::filesystem::remove(Path("rankrun")));
  EXPECT_EQ(OutputOf("./torchrun x"), "pytorch's x\n");
  EXPECT_EQ(OutputOf("python3 torchrun x"), "pytorch's x\n");
}

TEST_F(TorchrunEntryTest, IsUndone) {
  Write("torchrun", kPytorchs);
  ASSERT_TRUE(Install());
  auto undone = Uninstall();
  ASSERT_TRUE(undone);
  EXPECT_EQ(*undone, Path("torchrun") + " is PyTorch's again");
  EXPECT_EQ(Read("torchrun"), kPytorchs);
  EXPECT_FALSE(std::filesystem::exists(Path("torchrun-pytorch")));
  undone = Uninstall();
  ASSERT_TRUE(undone);
  EXPECT_EQ(*undone, Path("torchrun") + " does not start rankrun: left as it is");
  EXPECT_EQ(Read("torchrun"), kPytorchs);
}

TEST_F(TorchrunEntryTest, WithoutPytorchNothingRemains) {
  ASSERT_TRUE(Install());
  auto undone = Uninstall();
  ASSERT_TRUE(undone);
  EXPECT_EQ(*undone, Path("torchrun") + " is removed; PyTorch had none here");
  EXPECT_FALSE(std::filesystem::exists(Path("torchrun")));
}

TEST_F(TorchrunEntryTest, IsRepeatedAfterAnUpgradeOfPytorch) {
  Write("torchrun", kPytorchs);
  ASSERT_TRUE(Install());
  ASSERT_TRUE(Install());
  EXPECT_EQ(Read("torchrun-pytorch"), kPytorchs);
  const std::string newer = std::string(kPytorchs) + "# newer\n";
  std::filesystem::remove(Path("torchrun"));  // as pip does
  Write("torchrun", newer);
  ASSERT_TRUE(Install());
  EXPECT_EQ(Read("torchrun-pytorch"), newer);
  EXPECT_EQ(OutputOf("./torchrun"), "python= --as-torchrun\n");
}

TEST_F(TorchrunEntryTest, AnotherTorchrunIsLeftAlone) {
  Write("torchrun", "#!/bin/sh\necho mine\n");
  auto done = Install();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, Path("torchrun") + " is not PyTorch's torchrun: left as it is");
  EXPECT_EQ(OutputOf("./torchrun"), "mine\n");
  ASSERT_TRUE(Uninstall());
  EXPECT_EQ(OutputOf("./torchrun"), "mine\n");
}

TEST_F(TorchrunEntryTest, APathThatBreaksTheTextIsRefused) {
  for (const char* path : {"/a'b/rankrun", "/a\"b/rankrun", "/a\\b/rankrun", "/a\nb/rankrun"}) {
    auto done = InstallTorchrun(folder_.path(), path);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(std::filesystem::exists(Path("torchrun")));
  }
}

TEST_F(TorchrunEntryTest, AFolderThatCannotBeWrittenIsNamed) {
  auto done = InstallTorchrun(Path("absent"), Path("rankrun"));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find(Path("absent")), std::string::npos) << done.error().message;
}

}  // namespace
}  // namespace rankrun::launcher
