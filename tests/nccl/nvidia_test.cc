// The libraries of CUDA and NCCL that the plug-in finds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/base/support.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kFakeRuntime[] = "libcudart.so." RANKRUN_CUDA_MAJOR;

// A folder with libraries for a process that has none yet.
class NvidiaTest : public ::testing::Test {
 protected:
  void Put(const std::string& fake, const std::string& place) {
    const std::string path = folder_.Write(place, "");
    std::filesystem::copy_file(test::InBuild("tests/nccl/" + fake), path,
                               std::filesystem::copy_options::overwrite_existing);
  }

  // Without it the loader would take the library of the system.
  void PutBroken(const std::string& place) { folder_.Write(place, "none"); }

  // Returns what the probe says with the libraries of `libraries`, and the plug-ins of `plugins`.
  std::string Ask(const std::string& plugins = test::Library()) {
    const std::string command = "env RANKRUN_PLUGIN_DIR=" + plugins +
                                " LD_LIBRARY_PATH=" + folder_.Path("libraries") + " " +
                                test::Program("gpu_probe");
    FILE* pipe = popen(command.c_str(), "r");
    std::string text = pipe == nullptr ? "popen" : test::ReadToEnd(fileno(pipe));
    EXPECT_EQ(pclose(pipe), 0);
    return text;
  }

  test::TempFolder folder_;
};

TEST_F(NvidiaTest, TheLoaderFindsBoth) {
  Put(kFakeRuntime, "libraries/" + std::string(kFakeRuntime));
  Put("libnccl.so.2", "libraries/libnccl.so.2");
  EXPECT_EQ(Ask(), "GPUs\n");
}

TEST_F(NvidiaTest, AnOlderRuntimeWillDo) {
  PutBroken("libraries/libcudart.so.13");
  Put(kFakeRuntime, "libraries/libcudart.so.12");
  Put("libnccl.so.2", "libraries/libnccl.so.2");
  EXPECT_EQ(Ask(), "GPUs\n");
}

TEST_F(NvidiaTest, ThoseOfPypiLieBesideThePackage) {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libnccl.so.2"}) {
    PutBroken("libraries/" + std::string(name));
  }
  std::filesystem::create_directories(folder_.Path("site/rankrun/lib"));
  std::filesystem::copy_file(test::Library("librankrun_nccl.so"),
                             folder_.Path("site/rankrun/lib/librankrun_nccl.so"));
  Put(kFakeRuntime, "site/nvidia/cuda_runtime/lib/libcudart.so.12");
  Put("libnccl.so.2", "site/nvidia/nccl/lib/libnccl.so.2");
  EXPECT_EQ(Ask(folder_.Path("site/rankrun/lib")), "GPUs\n");
}

TEST_F(NvidiaTest, WithoutARuntimeTheLoadersReasonsAreSaid) {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    PutBroken("libraries/" + std::string(name));
  }
  EXPECT_THAT(Ask(), AllOf(StartsWith("cannot load CUDA's runtime: "),
                           HasSubstr("libcudart.so.13: file too short; "),
                           HasSubstr("libcudart.so.12: file too short; ")));
}

TEST_F(NvidiaTest, AFunctionThatAnOldNcclLacksIsNamed) {
  Put(kFakeRuntime, "libraries/" + std::string(kFakeRuntime));
  Put(kFakeRuntime, "libraries/libnccl.so.2");
  EXPECT_EQ(Ask(), "NCCL is too old or too new: it has no ncclAllGather\n");
}

}  // namespace
}  // namespace rankrun::comm
