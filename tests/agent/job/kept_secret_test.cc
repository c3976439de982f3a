#include "agent/job/kept_secret.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::string_literals::operator""s;

TEST(KeptSecretTest, ComesBackAsItWas) {
  auto secret = KeptSecret::Create();
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->Read(), std::nullopt);
  ASSERT_TRUE(secret->Keep("a\0b\n"s));
  EXPECT_EQ(secret->Read(), "a\0b\n"s);
}

TEST(KeptSecretTest, AChildMayKeepIt) {
  auto secret = KeptSecret::Create();
  ASSERT_TRUE(secret);
  EXPECT_EQ(test::WaitForExit(test::Fork([&] { return secret->Keep("hush") ? 0 : 1; })).value, 0);
  EXPECT_EQ(secret->Read(), "hush");
}

TEST(KeptSecretTest, AVariableMovesOutOfTheEnvironment) {
  char entry[] = "HUSH=secret";
  test::ScopedVariable more("HUSH_MORE", "stays");
  putenv(entry);
  auto secret = KeptSecret::Create();
  ASSERT_TRUE(secret);
  ASSERT_TRUE(TakeVariable("HUSH", *secret));
  EXPECT_EQ(secret->Read(), "secret");
  EXPECT_EQ(getenv("HUSH"), nullptr);
  EXPECT_STREQ(getenv("HUSH_MORE"), "stays");
  EXPECT_EQ(std::string(entry, sizeof entry), std::string(sizeof entry, '\0'));
}

TEST(KeptSecretTest, AVariableWithoutAValueStays) {
  test::ScopedVariable empty("HUSH", "");
  auto secret = KeptSecret::Create();
  ASSERT_TRUE(secret);
  ASSERT_TRUE(TakeVariable("HUSH", *secret));
  ASSERT_TRUE(TakeVariable("HUSH_UNSET", *secret));
  EXPECT_EQ(secret->Read(), std::nullopt);
  EXPECT_STREQ(getenv("HUSH"), "");
}

}  // namespace
}  // namespace rankrun::agent
