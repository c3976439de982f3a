#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace rankrun {
namespace {

TEST(ResultTest, HoldsItsValue) {
  Result<int> result = 7;
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 7);
}

TEST(ResultTest, HoldsItsError) {
  Result<int> result = Error{ErrorCode::kTimeout, "wait: too long"};
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(result.error().message, "wait: too long");
}

TEST(ResultTest, IsReadThroughConstToo) {
  Result<std::string> text = std::string("value");
  EXPECT_EQ(text->size(), 5u);
  const Result<std::string>& constant = text;
  EXPECT_EQ(*constant, "value");
  EXPECT_EQ(constant->size(), 5u);
}

TEST(ResultTest, GivesUpAValueThatOnlyMoves) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  std::unique_ptr<int> taken = std::move(*result);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 3);
}

TEST(ResultTest, VoidIsSuccessUnlessItHoldsAnError) {
  Result<void> good;
  EXPECT_TRUE(good);
  Result<void> bad = Error{ErrorCode::kInvalid, "no"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(std::move(bad).error().message, "no");
}

TEST(ResultTest, InPrependsTheCallersContext) {
  Error error = Error{ErrorCode::kPeerLost, "read: reset"}.In("join");
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(error.message, "join: read: reset");
}

TEST(ResultTest, ASystemErrorSaysWhatAndWhy) {
  EXPECT_EQ(SystemError("open /x", ENOENT).message, "open /x: No such file or directory");
}

TEST(ResultTest, ASystemErrorHasTheCodeThatFits) {
  EXPECT_EQ(SystemError("x", ENOENT).code, ErrorCode::kNotFound);
  EXPECT_EQ(SystemError("x", ETIMEDOUT).code, ErrorCode::kTimeout);
  for (int exhausted : {EAGAIN, EMFILE, ENFILE, ENOMEM}) {
    EXPECT_EQ(SystemError("x", exhausted).code, ErrorCode::kExhausted) << exhausted;
  }
  for (int other : {EACCES, EBADF, ECONNRESET, 99999}) {
    EXPECT_EQ(SystemError("x", other).code, ErrorCode::kSystem) << other;
  }
}

}  // namespace
}  // namespace rankrun
