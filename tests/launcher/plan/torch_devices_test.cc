#include "launcher/plan/torch_devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/support.h"

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;

struct TorchDevicesTest : testing::Test {
  // Asks a made program in the place of Python.
  Result<TorchDevices> Ask(const std::string& script,
                           milliseconds patience = std::chrono::seconds(20)) const {
    std::string python = folder.Write("python", "#!/bin/sh\n" + script + "\n", 0755);
    return AskTorch(python, {"ANSWER=a", "PATH=/usr/bin:/bin", "ANSWER=b"}, {.limit = patience});
  }

  // Asks a Python whose PyTorch is made of these files.
  Result<TorchDevices> AskPython(const std::string& version, const std::string& torch) const {
    folder.Write("lib/torch/version.py", version);
    folder.Write("lib/torch/__init__.py", torch);
    return AskTorch(kPython, {"PYTHONPATH=" + folder.Path("lib")});
  }

  static constexpr const char* kPython = "/usr/bin/python3";
  test::TempFolder folder;
};

TEST_F(TorchDevicesTest, TheAnswerIsALineOfItsOwn) {
  EXPECT_EQ(*Ask("echo a warning; echo; echo rankrun xpu 4"), (TorchDevices{"xpu", 4}));
  EXPECT_EQ(*Ask("echo; echo rankrun none 0"), TorchDevices());
  EXPECT_EQ(*Ask("echo; echo rankrun $ANSWER 1"), (TorchDevices{"b", 1}));
}

TEST_F(TorchDevicesTest, AFailureNamesThePython) {
  std::string whose = "the PyTorch of " + folder.Path("python") + " ";
  EXPECT_EQ(Ask("exit 3").error().message, whose + "failed with exit code 3");
  EXPECT_EQ(Ask("kill -SEGV $$").error().message, whose + "failed with exit code 139");
  EXPECT_EQ(Ask("echo; echo rankrun xpu many").error().message, whose + "failed with exit code 0");
  auto late = Ask("sleep 1000 & exec sleep 1000", milliseconds(100));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(late.error().message, whose + "did not answer within 0.100 s");
  EXPECT_FALSE(AskTorch(folder.Path("gone"), {}));
}

TEST_F(TorchDevicesTest, APyTorchForOtherDevicesIsImported) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "there is no " << kPython;
  std::string torch = R"(
class accelerator:
    is_available = lambda: True
    current_accelerator = lambda: type("", (), {"type": "xpu"})
    device_count = lambda: 3
)";
  EXPECT_EQ(*AskPython("hip = None\nxpu = '2025'\n", torch), (TorchDevices{"xpu", 3}));
  EXPECT_EQ(*AskPython("cuda = '13.0'\nhip = None\nxpu = None\n", torch), TorchDevices())
      << "rankrun counts GPUs of NVIDIA itself";
  EXPECT_EQ(*AskPython("hip = '7'\n",
                       "class cuda:\n  is_available = lambda: True\n"
                       "  device_count = lambda: 2\n"),
            (TorchDevices{"cuda", 2}))
      << "an older PyTorch";
  EXPECT_FALSE(AskPython("hip = '7'\n", "raise OSError('no library')\n"));
}

}  // namespace
}  // namespace rankrun::launcher
