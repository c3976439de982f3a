#include "comm/plugin.h"

#include <gmock/gmock.h>
#include <stdlib.h>

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PluginTest, TheGlooPluginLoadsAndIsOfThisVersion) {
  const auto plugin = LoadPlugin("gloo", {RANKRUN_LIB_DIR});
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_EQ((*plugin)->abi_version, kBackendAbiVersion);
}

TEST(PluginTest, TheFirstFolderThatHasItIsTaken) {
  const auto plugin = LoadPlugin("gloo", {"/nonexistent", RANKRUN_LIB_DIR});
  EXPECT_TRUE(plugin);
}

TEST(PluginTest, AMissingPluginIsAnErrorWithEveryPathAndTheLoadersWords) {
  const auto plugin = LoadPlugin("none", {"/nonexistent", "/nonexistent/rankrun"});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(plugin.error().message,
              AllOf(HasSubstr("load backend none"), HasSubstr("/nonexistent/librankrun_none.so"),
                    HasSubstr("/nonexistent/rankrun/librankrun_none.so"),
                    HasSubstr("cannot open shared object file")));
}

TEST(PluginTest, ANameCannotLeadOutOfTheFolder) {
  for (const char* name : {"", "../gloo", "a b", "/x"}) {
    const auto plugin = LoadPlugin(name, {RANKRUN_LIB_DIR});
    ASSERT_FALSE(plugin) << name;
    EXPECT_THAT(plugin.error().message, HasSubstr("want letters, digits and _"));
  }
}

TEST(PluginTest, TheChosenFolderComesFirstThenThatOfTheLibrary) {
  ASSERT_EQ(setenv("RANKRUN_PLUGIN_DIR", "/chosen", 1), 0);
  const auto folders = PluginFolders();
  ASSERT_EQ(folders.size(), 3U);
  EXPECT_EQ(folders[0], "/chosen");
  EXPECT_EQ(folders[2], folders[1] + "/rankrun");
}

}  // namespace
}  // namespace rankrun::comm
