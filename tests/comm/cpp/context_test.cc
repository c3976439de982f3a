// Contexts, which are worlds side by side in one process, and groups after Destroy.

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/objects.h>

#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string UrlOfRankZero() {
  return "tcp://127.0.0.1:" + std::to_string(test::FreePort()) + "?world_size=3";
}

struct ContextTest : testing::TestWithParam<const char*> {
  static InitOptions Options() { return {.timeout = seconds(60), .backend = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, ContextTest, testing::Values("shm", "tcp", "gloo"),
                         NameOfBackend);

TEST_P(ContextTest, SeveralWorkSideBySide) {
  auto texts = OnRanks(3, [](int) {
    Init(Options());
    Context one("one", Options());
    Context two("two", Options());
    ProcessGroup& ends = two.NewGroup({.ranks = {0, 2}});
    std::string text = SumOf(World()) + ", " + SumOf(one.World()) + ", " + SumOf(two.World());
    if (ends.is_member() && SumOf(ends) != "2 of 2") text += ", another sum in the group";
    Destroy();
    return text + ", " + SumOf(one.World());
  });
  EXPECT_THAT(texts, Each("3 of 3, 3 of 3, 3 of 3, 3 of 3"));
}

TEST_P(ContextTest, RanksMayBeOthersThanInTheJob) {
  auto texts = OnRanks(3, [](int r) {
    if (r == 0) return std::string("7");
    InitOptions options = Options();
    options.rank = 2 - r;
    options.world_size = 2;
    Context context("last-two", options);
    std::vector<int64_t> value{context.World().group_rank() == 0 ? 7 : 0};
    context.World().Broadcast(value, GlobalRank{0});
    return std::to_string(value[0]);
  });
  EXPECT_THAT(texts, Each("7"));
}

TEST_P(ContextTest, AFailureIsOfItsContextAlone) {
  auto texts = OnRanks(2, [](int r) {
    Init(Options());
    auto context = std::make_unique<Context>("io", Options());
    std::string error = ErrorOf([&] {
      if (r == 1) context->World().Barrier(milliseconds(100));
    });
    std::string text = SumOf(World());
    if (r == 1 && context->World().state() == GroupState::kOk) text += ", not broken";
    if (r == 1 && error.find("of the world of context \"io\", rank 1 of 2") == std::string::npos) {
      text += ", " + error;
    }
    context.reset();
    context = std::make_unique<Context>("io", Options());
    return text + ", " + SumOf(context->World());
  });
  EXPECT_THAT(texts, Each("2 of 2, 2 of 2"));
}

TEST_P(ContextTest, TheyShareTheStoreThatRankZeroServes) {
  std::string url = UrlOfRankZero();
  auto texts = OnRanks(3, [&](int r) {
    InitOptions options = Options();
    options.init_method = url;
    options.rank = r;
    std::string sums;
    for (int i = 0; i < 5; ++i) {
      sums += SumOf(Init(options));
      auto one = std::make_unique<Context>("one", options);
      auto two = std::make_unique<Context>("two", options);
      sums += SumOf(one->World());
      if ((r + i) % 2 == 0) one.reset();
      Destroy();
      one.reset();
      sums += SumOf(two->World());
    }
    return sums;
  });
  std::string wanted;
  for (int i = 0; i < 3 * 5; ++i) wanted += "3 of 3";
  EXPECT_THAT(texts, Each(wanted));
}

TEST_P(ContextTest, ThreadsMakeAndDestroyThemAtOnce) {
  auto texts = OnRanks(2, [](int) {
    std::vector<std::string> sums(4);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < sums.size(); ++t) {
      threads.emplace_back([&sums, t] {
        for (int i = 0; i < 5; ++i) {
          Context context("thread_" + std::to_string(t), Options());
          sums[t] += SumOf(context.World());
        }
      });
    }
    threads.clear();
    const std::string wanted = "2 of 22 of 22 of 22 of 22 of 2";
    bool all_right = std::count(sums.begin(), sums.end(), wanted) == std::ssize(sums);
    return all_right ? std::string() : testing::PrintToString(sums);
  });
  EXPECT_THAT(texts, Each(""));
}

TEST_P(ContextTest, AWorldThatIsDestroyedIsAnError) {
  auto texts = OnRanks(2, [](int) {
    Context context("io", Options());
    Destroy(context.World());
    return ErrorOf([&] { context.World(); }) + "; " + ErrorOf([&] { context.NewGroup({}); });
  });
  const std::string error = "DistError: Context \"io\": its world is destroyed: want a new Context";
  EXPECT_THAT(texts, Each(error + "; " + error));
}

TEST(ContextPortTest, AnotherKindOfAddressAtTheSamePortIsRefused) {
  auto texts = OnRanks(1, [](int) {
    const std::string port = std::to_string(test::FreePort());
    const std::string query = "?rank=0&world_size=1";
    Context local("local", {.init_method = "tcp://127.0.0.1:" + port + query});
    return ErrorOf([&] { Context("open", {.init_method = "tcp://0.0.0.0:" + port + query}); });
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistError: Context \"open\": the store, rank 0 of 1: "
                                         "this process serves a store at port "),
                              HasSubstr(" of loopback only: want another port than for 0.0.0.0:")));
}

TEST(ContextNameTest, IsCheckedBeforeAnyRankWaits) {
  EXPECT_THAT(ErrorOf([] { Context(""); }),
              AllOf(StartsWith("DistError: Context: the name is \"\": want letters")));
  EXPECT_THAT(ErrorOf([] { Context("a/b"); }), HasSubstr("the name is \"a/b\""));
}

TEST(ContextNameTest, IsThatOfOneOpenContext) {
  auto texts = OnRanks(1, [](int) {
    Context first("io");
    return ErrorOf([] { Context("io"); });
  });
  EXPECT_EQ(texts[0],
            "DistError: Context: this process has a context of this name: want another name");
}

TEST(ContextNameTest, IsFreeAfterAnInitThatFailed) {
  auto texts = OnRanks(1, [](int) {
    std::string error = ErrorOf([] { Context("io", {.backend = "no-such"}); });
    Context context("io");
    return error.substr(0, error.find(": join")) + ", " + SumOf(context.World());
  });
  EXPECT_EQ(texts[0], "DistError: Context \"io\", 1 of 1");
}

// Each function of a group.
std::vector<std::function<void()>> AllCalls(ProcessGroup& group, std::vector<float>& data) {
  ReduceOp sum = ReduceOp::kSum;
  GlobalRank root{0};
  std::vector<Tensor> parts{data};
  std::vector<ConstTensor> inputs{data};
  return {
      [&] { group.global_rank(); },
      [&] { group.is_member(); },
      [&] { group.group_rank(); },
      [&] { group.world_size(); },
      [&] { group.global_ranks(); },
      [&, root] { group.GroupRankOf(root); },
      [&] { group.GlobalRankOf(GroupRank{0}); },
      [&] { group.name(); },
      [&] { group.description(); },
      [&] { group.backend(); },
      [&] { group.state(); },
      [&] { group.broken_reason(); },
      [&] { group.AllReduce(data); },
      [&, root] { group.Reduce(data, root); },
      [&, root] { group.Broadcast(data, root); },
      [&, parts] { group.AllGather(parts, data); },
      [&] { group.AllGatherInto(data, data); },
      [&, parts] { group.Gather(parts, data); },
      [&, inputs] { group.Scatter(data, inputs); },
      [&, inputs, sum] { group.ReduceScatter(data, inputs, sum); },
      [&, sum] { group.ReduceScatterFrom(data, data, sum); },
      [&, parts, inputs] { group.AllToAll(parts, inputs); },
      [&] { group.AllToAllSingle(data, data); },
      [&] { group.Barrier(); },
      [&] { group.MonitoredBarrier(); },
      [&, root] { group.Send(data, root); },
      [&] { group.Recv(data); },
      [&, root] { group.ISend(data, root); },
      [&] { group.IRecv(data); },
      [&] { group.Batch({}); },
      [&] { AllGatherObject(group, Object{}); },
      [&] { Destroy(group); },
  };
}

TEST(DestroyedGroupTest, EachCallIsAnError) {
  auto texts = OnRanks(1, [] {
    ProcessGroup& group = (Init(), NewGroup({.description = "tp"}));
    Destroy(group);
    Destroy();
    std::vector<float> data(4);
    std::string text;
    for (const auto& call : AllCalls(group, data)) text += ErrorOf(call) + "\n";
    return text;
  });
  std::vector<std::string> lines;
  std::istringstream text(texts[0]);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const std::string destroyed = "process group \"tp\", global rank 0 (0 of 1) is destroyed";
  EXPECT_EQ(lines.back(), "DistError: Destroy: " + destroyed + " already");
  lines.pop_back();
  EXPECT_EQ(lines.size(), 31U);
  EXPECT_THAT(lines, Each("DistError: " + destroyed + ": want no call after Destroy()"));
}

TEST(DestroyedGroupTest, CallbacksOfItsLastWorkMayStillAskForIt) {
  auto texts = OnRanks(2, [] {
    Init();
    ProcessGroup& group = NewGroup({.description = "tp"});
    std::vector<float> data(4);
    std::string by_message;
    std::string by_collective;  // another thread runs this callback
    group.IRecv(data, GlobalRank{1 - group.global_rank()}).Then([&] {
      by_message = group.description();
    });
    group.AllReduce(data, ReduceOp::kSum, kAsync).Then([&] {
      by_collective = group.description();
    });
    Destroy(group);
    return by_message + by_collective;
  });
  EXPECT_THAT(texts, Each("tptp"));
}

TEST(DestroyedGroupTest, AReferenceToAWorldStaysDestroyedAfterTheNextInit) {
  auto texts = OnRanks(2, [] {
    ProcessGroup& first = Init();
    Destroy();
    ProcessGroup& second = Init();
    return ErrorOf([&] { first.Barrier(); }) + ", " + SumOf(second);
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistError: the world process group, rank "),
                                EndsWith("want no call after Destroy(), 2 of 2"))));
}

}  // namespace
}  // namespace rankrun::comm
