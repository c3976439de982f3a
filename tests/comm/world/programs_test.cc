// Programs that run one after the other as one rank, such as in `sh -c 'prepare && train'`.

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/distributed.h>
#include <rankrun/rpc.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

// Runs `body` as a program of its own.
std::string AsProgram(const std::function<std::string()>& body) {
  return ChildProcess([&] {
           std::string text;
           std::string error = ErrorOf([&] { text = body(); }, std::chrono::hours(1));
           return error == "no error" ? text : error;
         })
      .Text();
}

std::string SumAt(const InitOptions& options) {
  std::string sum = SumOf(Init(options));
  Destroy();
  return sum;
}

struct ProgramsTest : testing::TestWithParam<const char*> {
  static InitOptions Options(const std::string& init_method = "env://") {
    return {.timeout = seconds(60), .backend = GetParam(), .init_method = init_method};
  }
  // Runs programs one after the other as each of 3 ranks. Returns the texts of each rank.
  static std::vector<std::string> RunEach(const std::vector<std::function<std::string()>>& bodies) {
    return OnRanks(3, [&](int r) {
      SetHostFor(GetParam(), r);
      std::string texts;
      for (const auto& body : bodies) texts += AsProgram(body) + "; ";
      return texts;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ProgramsTest,
                         testing::Values("shm", "tcp", "gloo", "hierarchical"), NameOfBackend);

TEST_P(ProgramsTest, EachMeetsInTheStoreOfTheAgent) {
  auto once = [] { return SumAt(Options()); };
  auto twice = [] { return SumAt(Options()) + ", " + SumAt(Options()); };
  EXPECT_THAT(RunEach({once, twice, once}), Each("3 of 3; 3 of 3, 3 of 3; 3 of 3; "));
}

TEST_P(ProgramsTest, EachMeetsInTheStoreOfRankZero) {
  for (int i = 0; i < 5; ++i) {
    std::string url = "tcp://127.0.0.1:" + std::to_string(test::FreePort());
    auto once = [&] { return SumAt(Options(url)); };
    EXPECT_THAT(RunEach({once, once, once}), Each("3 of 3; 3 of 3; 3 of 3; "));
  }
}

TEST_P(ProgramsTest, EachMeetsInAFile) {
  for (int i = 0; i < 5; ++i) {
    test::TempFolder folder;
    auto once = [&] { return SumAt(Options("file://" + folder.Path("meet"))); };
    EXPECT_THAT(RunEach({once, once, once}), Each("3 of 3; 3 of 3; 3 of 3; "));
  }
}

TEST_P(ProgramsTest, EachMeetsInAStoreOfItsOwnChoice) {
  auto once = [] {
    auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
    InitOptions options = Options();
    options.rank = std::stoi(getenv("RANK"));
    options.world_size = 3;
    options.store = std::make_shared<TcpStore>(TcpStoreOptions{.port = port});
    return SumAt(options);
  };
  EXPECT_THAT(RunEach({once, once}), Each("3 of 3; 3 of 3; "));
}

TEST_P(ProgramsTest, EachMakesContextsAndGroups) {
  auto program = [] {
    ProcessGroup& world = Init(Options());
    Context context("own", Options());
    std::string sums = SumOf(context.World()) + ", " + SumOf(NewGroup({.ranks = {0, 1, 2}}));
    world.Barrier();
    Destroy();
    return sums;
  };
  EXPECT_THAT(RunEach({program, program}), Each("3 of 3, 3 of 3; 3 of 3, 3 of 3; "));
}

// Returns once rank 0 has come to the second world of this job.
void AwaitRankZero() {
  TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
  store.Wait({"rankrun/attempt_0/world_1/came/0"}, seconds(60));
}

TEST_P(ProgramsTest, ARankMayBeginTheNextWhileOthersAreInTheFirst) {
  auto first = [] {
    std::string sum = SumOf(Init(Options()));
    if (World().global_rank() != 0) AwaitRankZero();
    Destroy();
    return sum;
  };
  auto next = [] { return SumAt(Options()); };
  EXPECT_THAT(RunEach({first, next}), Each("3 of 3; 3 of 3; "));
}

TEST_P(ProgramsTest, AnErrorAndDestroyGiveThePlaceBack) {
  auto fails = [] {
    ProcessGroup& world = Init(Options());
    std::vector<int64_t> values(world.global_rank() == 0 ? 1 : 2);
    std::string text = ErrorOf([&] { world.AllReduce(values); });
    Destroy();
    return text.substr(0, 4);
  };
  auto next = [] { return SumAt(Options()); };
  EXPECT_THAT(RunEach({fails, next}), Each("Dist; 3 of 3; "));
}

TEST_P(ProgramsTest, AProgramThatEndsWithoutDestroyKeepsThePlace) {
  auto returns = [] { return SumOf(Init(Options())); };
  auto next = [] { return SumAt(Options()); };
  EXPECT_THAT(
      RunEach({returns, next}),
      Each(AllOf(StartsWith("3 of 3; DistError: Init: env://, rank "),
                 HasSubstr("this rank has been here before: another process has the same "
                           "rank, or an earlier program of this worker has failed in Init or "
                           "ended without Destroy(): want a rankrun for each program, or Init and "
                           "Destroy() to succeed in each; "))));
}

TEST_P(ProgramsTest, AProgramWhoseInitFailsKeepsThePlace) {
  auto fails = [] {
    InitOptions options = Options();
    if (std::string(getenv("RANK")) == "0") options.backend = "missing";
    std::string text = ErrorOf([&] { Init(options); });
    Destroy();
    return text.substr(0, 4);
  };
  auto next = [] { return SumAt(Options()); };
  EXPECT_THAT(RunEach({fails, next}),
              Each(AllOf(StartsWith("Dist; DistError: Init: env://, rank "),
                         HasSubstr("an earlier program of this worker has failed in Init or "))));
}

TEST(ProgramsWithRpcTest, EachMeets) {
  auto texts = OnRanks(3, [](int id) {
    std::string texts;
    for (const char* backend : {"TENSORPIPE", "PROCESS_GROUP", "TENSORPIPE"}) {
      texts += AsProgram([&] {
                 rpc::RegisterMethod(
                     "echo", [](const rpc::WorkerInfo&, const rpc::Payload& text) { return text; });
                 rpc::Init("w" + std::to_string(id), {.backend = backend});
                 std::string text = rpc::RpcSync((id + 1) % 3, "echo", {"heard"}).bytes;
                 rpc::Shutdown();
                 return text;
               }) +
               "; ";
    }
    return texts;
  });
  EXPECT_THAT(texts, Each("heard; heard; heard; "));
}

TEST(ProgramsWithRpcTest, EachMakesADynamicGroup) {
  auto texts = OnRanks(2, [](int id) {
    std::string texts;
    for (int i = 0; i < 3; ++i) {
      texts += AsProgram([&] {
                 rpc::Init("w" + std::to_string(id), {.rank = id, .is_dynamic = true});
                 rpc::Shutdown();
                 return std::string("left");
               }) +
               "; ";
    }
    return texts;
  });
  EXPECT_THAT(texts, Each("left; left; left; "));
}

}  // namespace
}  // namespace rankrun::comm
