// Init in a file that is left from another run: all ranks fail at once and name the file, its age
// and what became of that run.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Matcher;
using testing::StartsWith;

constexpr std::chrono::hours kAge{3};

struct StaleFileTest : testing::Test {
  InitOptions At(int rank, int world_size) const {
    return {.timeout = std::chrono::hours(1),
            .init_method = "file://" + path,
            .rank = rank,
            .world_size = world_size};
  }
  std::vector<std::string> Run(int world_size) const {
    return OnRanks(world_size,
                   [&](int r) { return ErrorOf([&] { Init(At(r, world_size)).Barrier(); }); });
  }
  // Makes the file older, to see that no rank of the next run writes to it.
  void Age() const {
    timespec then{};
    then.tv_sec = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - kAge);
    const timespec times[] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  Matcher<const std::string&> Says(const std::string& why) const {
    return AllOf(StartsWith("DistError: Init: "), HasSubstr("store file " + path), HasSubstr(why),
                 HasSubstr("last written 3 h ago"));
  }

  test::TempFolder folder;
  std::string path = folder.Path("meet");
};

TEST_F(StaleFileTest, AFolderThatIsMissingIsAnErrorOfTheStore) {
  path = folder.Path("missing/meet");
  EXPECT_THAT(Run(2), Each(AllOf(StartsWith("DistStoreError: Init: "),
                                 HasSubstr(path + ": No such file or directory"))));
}

TEST_F(StaleFileTest, OfARunThatDiedInInit) {
  ChildProcess rank([&] { return ErrorOf([&] { Init(At(1, 3)); }); });
  FileStore(path, "rankrun")
      .Wait({"rankrun/attempt_0/world_0/barrier/0/arrived/1"}, std::chrono::minutes(1));
  const std::string process = "rank 1 (pid " + std::to_string(rank.pid()) + " on ";
  rank.Kill();
  EXPECT_EQ(rank.Text(), "");
  Age();
  for (int world_size : {3, 2}) {
    auto told = Run(world_size);
    EXPECT_THAT(told, Each(Says("meet: " + process)));
    EXPECT_THAT(told, Each(HasSubstr("has ended without Destroy()")));
  }
}

TEST_F(StaleFileTest, OfARunThatDiedInItsMiddle) {
  auto died = OnRanks(2, [&](int r) {
    Init(At(r, 2)).Barrier();
    return std::to_string(raise(SIGKILL));
  });
  EXPECT_THAT(died, Each(""));
  Age();
  EXPECT_THAT(Run(2), Each(Says("has ended without Destroy()")));
}

TEST_F(StaleFileTest, OfARunInWhichOneRankDidNotDestroy) {
  auto ended = OnRanks(2, [&](int r) {
    Init(At(r, 2)).Barrier();
    if (r == 0) Destroy();
    return std::string("ended");
  });
  EXPECT_THAT(ended, Each("ended"));
  Age();
  EXPECT_THAT(Run(2), Each(Says("meet: rank 1 (pid ")));
}

TEST_F(StaleFileTest, OfARunThatEndedByAnError) {
  OnRanks(2, [&](int r) {
    InitOptions options = At(r, 2);
    if (r == 0) options.backend = "missing";
    return ErrorOf([&] { Init(options); });
  });
  Age();
  EXPECT_THAT(Run(2), Each(Says("whose Init failed: ")));
}

TEST_F(StaleFileTest, OfThisRunMayBeMeant) {
  ChildProcess first([&] {
    InitOptions options = At(0, 2);
    options.backend = "missing";
    return ErrorOf([&] { Init(options); });
  });
  EXPECT_THAT(first.Text(), HasSubstr("missing"));
  ChildProcess late([&] { return ErrorOf([&] { Init(At(1, 2)); }); });
  EXPECT_THAT(late.Text(),
              AllOf(HasSubstr("meet: rank 0 (pid "), HasSubstr(", whose Init failed: "),
                    HasSubstr(", has ended without Destroy(), in this run or an "
                              "earlier one; last written ")));
}

TEST_F(StaleFileTest, InWhichThisRankHasComeIsAsOldAsBeforeThisCall) {
  FileStore(path, "rankrun").Set("rankrun/attempt_0/world_0/came/0", "1");
  Age();
  EXPECT_THAT(Run(1), Each(AllOf(HasSubstr("(last written 3 h ago)"),
                                 HasSubstr("this rank has been here before"))));
}

TEST_F(StaleFileTest, IsLeftByARankThatCannotNumberTheWorld) {
  FileStore(path, "rankrun").Set("rankrun/attempt_0/next_world/0", "no number");
  EXPECT_THAT(Run(1), Each(HasSubstr("next_world/0")));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(StaleFileTest, OfAnotherProgram) {
  FileStore(path, "my run").Set("key", "value");
  Age();
  EXPECT_THAT(Run(2), Each(Says("it belongs to run \"my run\"")));
  folder.Write("meet", "precious");
  Age();
  EXPECT_THAT(Run(2), Each(Says("not a store of this version")));
}

TEST_F(StaleFileTest, ThatIsHalfRemoved) {
  FileStore(path, "rankrun").Set("rankrun/attempt_0/users", "removed 1");
  Age();
  EXPECT_THAT(Run(2), Each(Says("its last user has died while it removed the file")));
}

TEST_F(StaleFileTest, OfTheAttemptBeforeServesTheNextOne) {
  OnRanks(2, [&](int r) {
    Init(At(r, 2)).Barrier();
    return std::to_string(raise(SIGKILL));
  });
  setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
  EXPECT_THAT(Run(2), Each("no error"));
  unsetenv("TORCHELASTIC_RESTART_COUNT");
}

TEST_F(StaleFileTest, RanksThatMeetNowAndDisagreeOnTheWorldSizeSaySo) {
  auto told = OnRanks(2, [&](int r) { return ErrorOf([&] { Init(At(r, 2 + r)); }); });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Init: "), HasSubstr("2 on rank 0"),
                               HasSubstr("3 on rank 1"))));
}

}  // namespace
}  // namespace rankrun::comm
