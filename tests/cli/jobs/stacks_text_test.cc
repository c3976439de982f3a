#include "cli/jobs/stacks_text.h"

#include <gmock/gmock.h>

#include "agent/inspect/request.h"

namespace rankrun::cli {
namespace {

using agent::StackGroup;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StackOperands Parsed(const std::vector<std::string>& texts) {
  auto operands = ParseStackOperands(texts, /*are_pids=*/false);
  EXPECT_TRUE(operands) << operands.error().message;
  return operands ? *operands : StackOperands();
}

std::string WhyNot(const std::vector<std::string>& texts, bool are_pids = false) {
  auto operands = ParseStackOperands(texts, are_pids);
  return operands ? "" : operands.error().message;
}

StackGroup Rank(int rank, const std::string& function) {
  const pid_t pid = 1000 + rank;
  agent::StackFrame frame;
  frame.function = function;
  return {.ranks = {{.rank = rank, .pid = pid}},
          .stacks = {.pid = pid,
                     .name = "train",
                     .state = 'S',
                     .threads = {{.tid = pid, .name = "train", .state = 'S', .native = {frame}}}}};
}

NodeAnswer Answer(const std::string& node, std::vector<StackGroup> groups) {
  return {node, EncodeStackGroups(std::move(groups), agent::kMaxAnswerBytes)};
}

TEST(StackOperandsTest, NumbersAndRangesAreRead) {
  EXPECT_THAT(Parsed({"7", "0-2", "1"}).numbers, ElementsAre(0, 1, 2, 7));
  EXPECT_TRUE(Parsed({"0-2"}).has_range);
  EXPECT_FALSE(Parsed({"3", "4711"}).has_range);
  for (const char* wrong : {"", "x", "12x", "3-", "-3", "3-1", "1-2-3", "5000000000"}) {
    EXPECT_THAT(WhyNot({wrong}), HasSubstr("is no rank and no pid; want numbers, or a range"));
  }
}

TEST(StackOperandsTest, TooManyAreRefusedWithAWayToNameFewer) {
  EXPECT_THAT(Parsed({"0-63"}).numbers, SizeIs(64));
  EXPECT_EQ(WhyNot({"0-2147483647"}),
            "0-2147483647 has 2147483648 ranks; one command takes the stacks of at most 64 ranks; "
            "name some, such as rankctl stacks 0-63 or rankctl stacks 3 17");
  EXPECT_THAT(WhyNot({"0-31", "32-63", "64"}), HasSubstr("65 numbers are given; one command"));
  auto all = RanksToAsk({}, "j", 65);
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("job j has 65 ranks; one command takes"));
}

TEST(StackOperandsTest, PidsHaveNoRanges) {
  EXPECT_EQ(WhyNot({"1", "3-99"}, true), "3-99: a range names ranks, not pids");
  std::vector<std::string> many;
  for (int pid = 1; pid <= 65; ++pid) many.push_back(std::to_string(pid));
  EXPECT_EQ(WhyNot(many, true),
            "65 numbers are given; one command takes the stacks of at most 64 processes");
}

TEST(StackOperandsTest, NumbersAreRanksIfAJobHasThem) {
  EXPECT_TRUE(*AreRanks(Parsed({"0", "3"}), 4));
  EXPECT_FALSE(*AreRanks(Parsed({"4", "4711"}), 4));
  EXPECT_FALSE(*AreRanks(Parsed({"4711"}), 0));
  EXPECT_TRUE(*AreRanks(Parsed({"4-7"}), 4)) << "a range means ranks";
  EXPECT_TRUE(*AreRanks({}, 0));
  auto mixed = AreRanks(Parsed({"3", "4711"}), 4);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().message,
            "3 is a rank of a job and 4711 is not; choose with --job or --pid what they are");
}

TEST(StackOperandsTest, WithoutRanksAllAreMeantAndRanksMustExist) {
  EXPECT_THAT(*RanksToAsk({}, "j", 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(*RanksToAsk(Parsed({"2", "1"}), "j", 3), ElementsAre(1, 2));
  auto missing = RanksToAsk(Parsed({"2", "3", "9"}), "j", 3);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "no ranks 3, 9 in job j, which has 3 ranks; --pid takes pids");
}

TEST(StackGroupsTextTest, EqualStacksOfSeveralNodesAreShownOnce) {
  const JobAnswers answers{.nodes = {Answer("a", {Rank(0, "lock"), Rank(1, "read_batch")}),
                                     Answer("b", {Rank(2, "lock"), Rank(3, "lock")})}};
  EXPECT_EQ(StackGroupsText(StackGroupsOf(answers, {0, 1, 2, 3}, true)),
            "ranks 0, 2, 3 (here rank 0 on a): pid 1000 (train), state S\n"
            "  thread 1000 (train), state S\n"
            "    lock\n"
            "\n"
            "rank 1 on a: pid 1001 (train), state S\n"
            "  thread 1001 (train), state S\n"
            "    read_batch\n");
}

TEST(StackGroupsTextTest, RanksWithoutStacksAreNamedWithTheReason) {
  StackGroup ended{.ranks = {{.rank = 1, .pid = 1001}},
                   .stacks = {.pid = 1001, .note = "it has ended: exit code 3"}};
  JobAnswers answers{.nodes = {Answer("a", {Rank(0, "lock"), ended})}, .missing = {"b"}};
  EXPECT_THAT(StackGroupsText(StackGroupsOf(answers, {0, 1, 2, 3}, true)),
              HasSubstr("\nrank 1 on a: it has ended: exit code 3\n"
                        "\nranks 2, 3: no answer from b\n"));
  answers = {.nodes = {{"a", R"({"error":"wrong request"})"}}};
  EXPECT_EQ(StackGroupsText(StackGroupsOf(answers, {0}, false)), "rank 0: a: wrong request\n");
  EXPECT_EQ(StackGroupsText(StackGroupsOf({}, {0}, false)),
            "rank 0: no node runs it at this moment\n");
}

TEST(StackGroupsTextTest, ForeignRanksAndRepeatedOnesAreLeftOut) {
  const JobAnswers answers{
      .nodes = {Answer("a", {Rank(0, "x"), Rank(7, "x")}), Answer("b", {Rank(0, "y")})}};
  const auto groups = StackGroupsOf(answers, {0}, false);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].ranks, SizeIs(1));
  EXPECT_EQ(groups[0].stacks.threads.at(0).native.at(0).function, "x");
}

TEST(StackGroupsTextTest, AnAnswerHasTheRanksWithStacksAndThoseWithAReason) {
  StackGroup ended{.ranks = {{.rank = 1, .pid = 1001}},
                   .stacks = {.pid = 1001, .note = "it has ended: exit code 3"}};
  EXPECT_THAT(RanksIn(Answer("a", {Rank(0, "x"), ended, Rank(2, "x")})), ElementsAre(0, 2, 1));
  EXPECT_THAT(RanksIn(Answer("a", {})), SizeIs(0));
  EXPECT_THAT(RanksIn({"a", R"({"error":"wrong request"})"}), SizeIs(0));
}

TEST(StackGroupsTextTest, OmittedThreadsAreCounted) {
  StackGroup group = Rank(0, "lock");
  group.omitted_threads = 3;
  EXPECT_THAT(StackGroupsText({group}), HasSubstr("lock\n  3 threads had no room in the answer\n"));
  EXPECT_THAT(StackGroupsJson({group}), HasSubstr(R"("omitted_threads":3)"));
}

TEST(StackGroupsTextTest, JsonHasALineForEachGroup) {
  const JobAnswers answers{
      .nodes = {Answer("a", {Rank(0, "lock")}), Answer("b", {Rank(1, "lock")})}};
  const std::string json = StackGroupsJson(StackGroupsOf(answers, {0, 1, 2}, true));
  EXPECT_THAT(json, HasSubstr(R"({"ranks":[0,1],"processes":[{"rank":0,"pid":1000,"node":"a"},)"
                              R"({"rank":1,"pid":1001,"node":"b"}],"stacks":{"pid":1000,)"));
  EXPECT_THAT(json, HasSubstr("\n{\"ranks\":[2],\"processes\":[],\"stacks\":{"));
}

}  // namespace
}  // namespace rankrun::cli
