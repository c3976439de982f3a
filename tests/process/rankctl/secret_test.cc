// The user's own job secret at the command line.

#include <gmock/gmock.h>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

struct RankctlSecretTest : ::testing::Test {
  // Returns the ended command.
  std::unique_ptr<Job> Run(std::vector<std::string> arguments) {
    auto job = std::make_unique<Job>(Job::Options{.arguments = std::move(arguments),
                                                  .variables = {{"XDG_CONFIG_HOME", folder.path()}},
                                                  .program = kRankctl});
    code = job->Wait();
    return job;
  }

  ScratchFolder folder;
  const std::string path = folder.Path("rankrun/secret");
  std::optional<ProcessExit> code;  // of the last command
};

TEST_F(RankctlSecretTest, OnlyTheFileIsShown) {
  EXPECT_THAT(Run({"secret"})->Err(),
              HasSubstr(path + ": No such file or directory; rankctl secret "
                               "--new makes it, as does the first job on several hosts"));
  EXPECT_EQ(code, Code(1));
  EXPECT_EQ(Run({"secret", "--new"})->Out(), path + "\n");
  EXPECT_EQ(code, Code(0));
  std::string first = ReadText(path);
  EXPECT_EQ(first.size(), 65u);
  EXPECT_EQ(Run({"secret"})->Out(), path + "\n");
  EXPECT_EQ(ReadText(path), first);
  EXPECT_EQ(Run({"secret", "--new"})->Out(), path + "\n");
  EXPECT_NE(ReadText(path), first);
}

TEST_F(RankctlSecretTest, AFileThatCannotBeUsedIsAnError) {
  Run({"secret", "--new"});
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(Run({"secret"})->Err(), HasSubstr("other users may open it"));
  EXPECT_EQ(code, Code(1));
}

}  // namespace
}  // namespace rankrun::testing
