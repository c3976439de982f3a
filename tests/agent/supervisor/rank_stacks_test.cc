#include "agent/supervisor/rank_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <optional>
#include <string>

#include "agent/inspect/request.h"
#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kBusy = "another rankctl is taking stacks on this node";

struct RankStacksTest : ::testing::Test {
  // Asks for the stacks of this process, as those of a rank.
  void Ask(std::optional<std::string>& answer) {
    taker.Answer({{.ranks = {{.rank = 0, .pid = getpid()}}, .stacks = {.pid = getpid()}}},
                 kMaxAnswerBytes, [&](std::string json) { answer = std::move(json); });
  }
  bool Comes(const std::optional<std::string>& answer) {
    return loop.RunUntil([&] { return answer.has_value(); }, test::kLong);
  }

  Loop loop;
  Spawner spawner{loop};
  RankStacksTaker taker{loop, spawner};
};

TEST_F(RankStacksTest, ASecondRequestIsRefusedUntilTheFirstHasEnded) {
  std::optional<std::string> first, second, third;
  Ask(first);
  EXPECT_FALSE(first) << "called inside the call";
  Ask(second);
  ASSERT_TRUE(Comes(first));
  ASSERT_TRUE(Comes(second));
  EXPECT_THAT(*first, Not(HasSubstr(kBusy)));
  EXPECT_THAT(*second, HasSubstr(kBusy));
  Ask(third);
  ASSERT_TRUE(Comes(third));
  EXPECT_THAT(*third, Not(HasSubstr(kBusy)));
}

TEST_F(RankStacksTest, CancellingAnswersWithWhatIsThere) {
  std::optional<std::string> answer, next;
  Ask(answer);
  taker.Cancel();
  Ask(next);
  ASSERT_TRUE(Comes(answer));
  EXPECT_THAT(*answer, HasSubstr("there was no time to read its stack"));
  ASSERT_TRUE(Comes(next));
  EXPECT_THAT(*next, Not(HasSubstr(kBusy)));
}

TEST_F(RankStacksTest, WithoutAProcessTheAnswerComesWhileAnotherIsUnderWay) {
  std::optional<std::string> first, ended;
  Ask(first);
  taker.Answer({{.ranks = {{.rank = 1}}, .stacks = {.note = "it has not started yet"}}},
               kMaxAnswerBytes, [&](std::string json) { ended = std::move(json); });
  ASSERT_TRUE(Comes(ended));
  EXPECT_THAT(*ended, HasSubstr("it has not started yet"));
  ASSERT_TRUE(Comes(first));
}

TEST(RanksOfTest, OnlyRanksOfThisNodeHaveAnEntry) {
  WorkerRecord running, ended, starting;
  running.pid = 10;
  ended.pid = 11;
  ended.exit = ProcessExit{.signaled = false, .value = 3};
  const std::vector<const WorkerRecord*> workers = {&running, &ended, &starting};
  const int last = std::numeric_limits<int>::max();
  const auto groups = RanksOf(workers, 4, {last, 7, 6, 5, 4, 4, 3, 0});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].ranks, (std::vector<RankProcess>{{.rank = 4, .pid = 10}}));
  EXPECT_EQ(groups[0].stacks.note, "");
  EXPECT_EQ(groups[1].ranks, (std::vector<RankProcess>{{.rank = 5, .pid = 11}}));
  EXPECT_THAT(groups[1].stacks.note, HasSubstr("it has ended: "));
  EXPECT_EQ(groups[2].ranks, (std::vector<RankProcess>{{.rank = 6}}));
  EXPECT_EQ(groups[2].stacks.note, "it has not started yet");
  EXPECT_TRUE(RanksOf({}, 0, {0}).empty());
  EXPECT_TRUE(RanksOf(workers, last - 1, {0}).empty());
}

}  // namespace
}  // namespace rankrun::agent
