// FileStores that count their users in the file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/rankrun.h>
#include <rankrun/store.h>

#include "tests/base/support.h"
#include "tests/comm/ranks.h"
#include "tests/comm/stores/thrown.h"

namespace rankrun {
namespace {

using comm::ChildProcess;
using test::kLong;

struct CountedFileStoreTest : testing::Test {
  std::unique_ptr<FileStore> Open(std::optional<int> world_size) const {
    return std::make_unique<FileStore>(path, "run", kLong, world_size);
  }
  bool IsThere() const { return std::filesystem::exists(path); }

  test::TempFolder folder;
  const std::string path = folder.Path("store");
};

TEST_F(CountedFileStoreTest, TheLastUserRemovesTheFile) {
  auto one = Open(2);
  auto other = Open(2);
  one->Set("k", "v");
  EXPECT_EQ(other->Get("k"), "v");
  EXPECT_EQ(other->path(), path);
  one.reset();
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(other->Get("k"), "v");
  other.reset();
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(Open(2)->Check({"k"})) << "the path serves again";
}

TEST_F(CountedFileStoreTest, TheFileStaysUntilAsManyHaveLeft) {
  Open(2).reset();
  EXPECT_TRUE(IsThere()) << "the other process is late";
  Open(2).reset();
  EXPECT_FALSE(IsThere());
}

TEST_F(CountedFileStoreTest, WithoutAWorldSizeTheFileStays) {
  Open(std::nullopt).reset();
  EXPECT_TRUE(IsThere());
}

TEST_F(CountedFileStoreTest, AProcessThatDiesKeepsTheFile) {
  auto one = Open(2);
  ChildProcess dies([&] {
    auto other = Open(2);
    _exit(1);
    return std::string();
  });
  dies.Text();
  one.reset();
  EXPECT_TRUE(IsThere());
}

TEST_F(CountedFileStoreTest, AForkIsNoUser) {
  auto one = Open(1);
  ChildProcess child([&] {
    one.reset();
    return std::string("left");
  });
  EXPECT_EQ(child.Text(), "left");
  EXPECT_TRUE(IsThere());
  one.reset();
  EXPECT_FALSE(IsThere());
}

TEST_F(CountedFileStoreTest, AClonePostponesTheEndOfItsOriginal) {
  auto one = Open(1);
  std::unique_ptr<Store> clone = one->Clone();
  one.reset();
  clone->Set("k", "v");
  EXPECT_EQ(clone->Get("k"), "v");
  clone.reset();
  EXPECT_FALSE(IsThere());
}

TEST_F(CountedFileStoreTest, AWorldSizeBelowOneIsRefused) {
  Thrown thrown = ThrownBy([&] { Open(0); });
  EXPECT_EQ(thrown.kind, "use");
  EXPECT_EQ(thrown.text, "FileStore: world_size is 0: want at least 1");
  EXPECT_FALSE(IsThere());
}

TEST_F(CountedFileStoreTest, InC) {
  rankrun_store* store = nullptr;
  ASSERT_EQ(rankrun_file_store_of_workers(path.c_str(), "run", 1, RANKRUN_DEFAULT_TIMEOUT, &store),
            RANKRUN_OK);
  EXPECT_EQ(rankrun_store_has_extended_api(store), 1);
  EXPECT_EQ(rankrun_store_has_extended_api(nullptr), 0);
  EXPECT_TRUE(IsThere());
  rankrun_store_release(store);
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(rankrun_file_store_of_workers(path.c_str(), "run", 0, RANKRUN_DEFAULT_TIMEOUT, &store),
            RANKRUN_INVALID);
}

}  // namespace
}  // namespace rankrun
