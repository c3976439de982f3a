#include "comm/world/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "tests/base/support.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Whether the process has loaded the library.
bool IsLoaded(const std::string& path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr;
}

TEST(PluginTest, TheFirstFolderThatHasItIsTaken) {
  test::TempFolder first;
  std::string path = first.Path("librankrun_gloo.so");
  std::filesystem::copy_file(test::Library("librankrun_gloo.so"), path);
  auto plugin = LoadPlugin("gloo", {"/nonexistent", first.path(), test::Library()});
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_TRUE(IsLoaded(path));
}

TEST(PluginTest, ANameOfNoBackendIsAnErrorWithTheNamesThatThereAre) {
  auto plugin = LoadPlugin("smh", {"/nonexistent", "/nonexistent/rankrun"});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(
      plugin.error().message,
      "backend is \"smh\": want auto, shm, tcp, hierarchical, gloo, a registered one, or a plug-in "
      "librankrun_smh.so in "
      "/nonexistent or /nonexistent/rankrun");
}

TEST(PluginTest, ABackendOfPyTorchThatRankrunLacksIsNoWrongName) {
  auto plugin = LoadPlugin("ucc", {"/nonexistent"});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().message,
            "backend is \"ucc\": this rankrun has none with UCC, and there is no plug-in "
            "librankrun_ucc.so in /nonexistent: want auto, shm, tcp, hierarchical, gloo or a "
            "registered one");
  for (const char* name : {"nccl", "xccl", "mpi"}) {
    EXPECT_THAT(LoadPlugin(name, {"/nonexistent"}).error().message,
                HasSubstr("this rankrun has none with "));
  }
}

TEST(PluginTest, AMissingGlooIsNoWrongName) {
  auto plugin = LoadPlugin("gloo", {"/nonexistent"});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plugin.error().message,
            "load backend gloo: there is no librankrun_gloo.so in /nonexistent");
}

TEST(PluginTest, APluginThatCannotBeLoadedIsAnErrorInTheLoadersWords) {
  test::TempFolder folder;
  std::string path = folder.Write("librankrun_bad.so", "no library");
  auto plugin = LoadPlugin("bad", {"/nonexistent", folder.path()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(plugin.error().message, StartsWith("load backend bad: " + path + ": "));
  EXPECT_THAT(plugin.error().message, Not(HasSubstr("/nonexistent")));
}

TEST(PluginTest, ALibraryThatIsNoBackendIsAnError) {
  auto plugin = LoadPlugin("topology", {test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kSystem);
  EXPECT_EQ(plugin.error().message, "load " + test::Library("librankrun_topology.so") +
                                        ": it has no function rankrun_backend_entry");
}

TEST(PluginTest, AnOutsideBackendThatTheLibraryCannotUseIsAnError) {
  std::string beginning = "load " + test::Library("librankrun_bad_backend.so") + ": ";
  ASSERT_EQ(setenv("RANKRUN_TEST_ENTRY", "null", 1), 0);
  auto plugin = LoadPlugin("bad_backend", {test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kSystem);
  EXPECT_EQ(plugin.error().message, beginning + "rankrun_backend_entry returned NULL");
  ASSERT_EQ(setenv("RANKRUN_TEST_ENTRY", "version", 1), 0);
  plugin = LoadPlugin("bad_backend", {test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().message, beginning + "the backend is of version 2: want 1");
}

TEST(PluginTest, AnOutsideBackendForGpusThatTheLibraryCannotUseIsAnError) {
  std::string beginning = "load " + test::Library("librankrun_bad_backend.so") + ": ";
  ASSERT_EQ(setenv("RANKRUN_TEST_ENTRY", "null", 1), 0);
  auto plugin = LoadDevicePlugin("bad_backend", {test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kSystem);
  EXPECT_EQ(plugin.error().message, beginning + "rankrun_device_backend_entry returned NULL");
  ASSERT_EQ(setenv("RANKRUN_TEST_ENTRY", "version", 1), 0);
  plugin = LoadDevicePlugin("bad_backend", {test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().message, beginning + "the backend is of version 2: want 1");
}

TEST(PluginTest, ABadPluginIsNotPassedOverForThatOfALaterFolder) {
  test::TempFolder folder;
  std::string path = folder.Write("librankrun_gloo.so", "no library");
  auto plugin = LoadPlugin("gloo", {folder.path(), test::Library()});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(plugin.error().message, StartsWith("load backend gloo: " + path + ": "));
}

TEST(PluginTest, ANameCannotLeadOutOfTheFolder) {
  for (const char* name : {"", "../gloo", "a b", "/x", "Gloo"}) {
    auto plugin = LoadPlugin(name, {test::Library()});
    ASSERT_FALSE(plugin) << name;
    EXPECT_THAT(plugin.error().message, HasSubstr("want one name of small letters, digits and _"));
  }
}

TEST(PluginTest, TheChosenFolderComesFirstThenThatOfTheLibrary) {
  ASSERT_EQ(setenv("RANKRUN_PLUGIN_DIR", "/chosen", 1), 0);
  auto folders = PluginFolders();
  ASSERT_EQ(folders.size(), 3U);
  EXPECT_EQ(folders[0], "/chosen");
  EXPECT_EQ(folders[2], folders[1] + "/rankrun");
}

}  // namespace
}  // namespace rankrun::comm
