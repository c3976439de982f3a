#include "agent/control/munge.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using testing::HasSubstr;

// A munged of the test's own.
struct MungeTest : testing::Test {
  void SetUp() override {
    if (std::system("command -v munged >/dev/null && test \"$(id -u)\" = 0") != 0) {
      GTEST_SKIP() << "munged is not installed, or this is not root";
    }
    folder.Write("key", std::string(1024, 'k'), 0400);
    is_running =
        Munged("--force --key-file=" + folder.Path("key") + " --pid-file=" + folder.Path("pid") +
               " --log-file=" + folder.Path("log") + " --seed-file=" + folder.Path("seed"));
    ASSERT_TRUE(is_running) << test::ReadWholeFile(folder.Path("out"));
  }
  void TearDown() override {
    if (is_running) Munged("--stop");
  }

  bool Munged(const std::string& arguments) const {
    std::string command =
        "munged --socket=" + socket + " " + arguments + " >" + folder.Path("out") + " 2>&1";
    return std::system(command.c_str()) == 0;
  }

  test::TempFolder folder;
  const std::string socket = folder.Path("socket");
  bool is_running = false;
};

TEST_F(MungeTest, ACredentialHasTheSecretForThisUser) {
  auto credential = MakeCredential("a secret", socket);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->find("a secret"), std::string::npos);
  for (int time = 0; time < 2; ++time) {  // munge reports the second as a replay
    auto secret = OpenCredential(*credential, socket);
    ASSERT_TRUE(secret) << secret.error().message;
    EXPECT_EQ(*secret, "a secret");
  }
}

TEST_F(MungeTest, OtherBytesAreNoCredential) {
  auto credential = MakeCredential("a secret", socket);
  ASSERT_TRUE(credential);
  std::string changed = *credential;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
  for (const std::string& text : {std::string(), std::string("MUNGE:AAAA:"), changed}) {
    auto secret = OpenCredential(text, socket);
    ASSERT_FALSE(secret);
    EXPECT_EQ(secret.error().code, ErrorCode::kInvalid) << secret.error().message;
  }
}

// Another user makes and opens credentials by programs of munge.
TEST_F(MungeTest, CredentialsAreOfOneUser) {
  std::string shell = "cd / && chmod 755 " + folder.path() + " && ";
  std::string as_nobody = "setpriv --reuid=65534 --clear-groups ";
  std::string foreign = folder.Path("foreign");
  ASSERT_EQ(std::system(
                (shell + "echo theirs | " + as_nobody + "munge --socket=" + socket + " >" + foreign)
                    .c_str()),
            0);
  auto secret = OpenCredential(test::ReadWholeFile(foreign), socket);
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, HasSubstr("is that of user 65534"));
  auto own = MakeCredential("a secret", socket);
  ASSERT_TRUE(own);
  folder.Write("own", *own);
  EXPECT_NE(std::system((shell + as_nobody + "unmunge --socket=" + socket + " <" +
                         folder.Path("own") + " >" + folder.Path("out") + " 2>&1")
                            .c_str()),
            0);
  EXPECT_THAT(test::ReadWholeFile(folder.Path("out")), HasSubstr("nauthorized"));
}

TEST(MungeErrorTest, WithoutMungedThereAreNoCredentials) {
  auto credential = MakeCredential("a secret", "/nowhere/munge.socket");
  ASSERT_FALSE(credential);
  EXPECT_EQ(credential.error().code, ErrorCode::kNotFound) << credential.error().message;
}

}  // namespace
}  // namespace rankrun::agent
