#include "agent/inspect/stack_groups.h"

#include <gmock/gmock.h>

#include <random>

#include "agent/inspect/request.h"

namespace rankrun::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

StackFrame Frame(const std::string& function, const std::string& module) {
  StackFrame frame;
  frame.function = function;
  frame.module = module;
  return frame;
}

// Returns a rank whose main thread waits in `function`.
StackGroup Rank(int rank, const std::string& function) {
  const pid_t pid = 1000 + rank;
  ThreadStack main{.tid = pid,
                   .name = "python3",
                   .state = 'S',
                   .system_call = "read",
                   .system_call_file = "socket:[" + std::to_string(rank) + "]",
                   .native = {Frame(function, "/lib/x.so")}};
  return {.ranks = {{.rank = rank, .pid = pid}},
          .stacks = {
              .pid = pid, .name = "python3", .state = 'S', .stopped_us = rank, .threads = {main}}};
}

StackGroup Ended(int rank) {
  return {.ranks = {{.rank = rank, .pid = 1000 + rank}},
          .stacks = {.pid = 1000 + rank, .note = "it has ended: exit code 1"}};
}

std::vector<int> RanksOf(const StackGroup& group) {
  std::vector<int> ranks;
  for (const RankProcess& process : group.ranks) ranks.push_back(process.rank);
  return ranks;
}

// Returns a rank with many threads in many frames of Python and below.
StackGroup Large(int rank) {
  StackGroup group = Rank(rank, "wait" + std::to_string(rank));
  group.stacks.interpreter = "/usr/bin/python3";
  ThreadStack thread = group.stacks.threads[0];
  for (int i = 0; i < 50; ++i) {
    thread.native.push_back(Frame("_PyEval" + std::to_string(i), "/usr/bin/python3"));
    thread.python.push_back(Frame("step" + std::to_string(i), ""));
  }
  group.stacks.threads.assign(100, thread);
  return group;
}

std::vector<StackGroup> Decoded(const std::string& json) {
  auto groups = DecodeStackGroups(json);
  EXPECT_TRUE(groups) << groups.error().message;
  return groups ? *std::move(groups) : std::vector<StackGroup>();
}

TEST(StackGroupsTest, EqualStacksAreOneGroup) {
  auto groups = MergeStackGroups(
      {Rank(4, "lock"), Ended(2), Rank(1, "read"), Rank(0, "lock"), Ended(5), Rank(3, "lock")});
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_EQ(RanksOf(groups[0]), (std::vector<int>{0, 3, 4}));
  EXPECT_EQ(groups[0].stacks.pid, 1000);
  EXPECT_EQ(RanksOf(groups[1]), (std::vector<int>{1}));
  EXPECT_EQ(RanksOf(groups[2]), (std::vector<int>{2, 5}));
}

TEST(StackGroupsTest, AnotherStateOrFileIsAnotherGroup) {
  StackGroup stopped = Rank(1, "lock");
  stopped.stacks.state = 'T';
  StackGroup other = Rank(2, "lock");
  other.stacks.threads[0].system_call_file = "/nfs/data";
  EXPECT_THAT(MergeStackGroups({Rank(0, "lock"), stopped, other}), SizeIs(3));
}

TEST(StackGroupsTest, GroupsSurviveTheirJson) {
  StackGroup starting{.ranks = {{.rank = 7}}, .stacks = {.note = "it has not started yet"}};
  const auto groups = MergeStackGroups({Rank(0, "a"), Rank(1, "a"), Ended(2), starting});
  const std::string json = EncodeStackGroups(groups, kMaxAnswerBytes);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_EQ(Decoded(json), groups);
  EXPECT_EQ(Decoded(EncodeStackGroups({}, 100)), std::vector<StackGroup>());
}

TEST(StackGroupsTest, AnAnswerFitsItsRoomAndSaysWhatIsLeftOut) {
  std::vector<StackGroup> ranks;
  for (int rank = 0; rank < 8; ++rank) ranks.push_back(Large(rank));
  const std::string json = EncodeStackGroups(ranks, kMaxAnswerBytes);
  EXPECT_LE(json.size(), kMaxAnswerBytes);
  const auto groups = Decoded(json);
  ASSERT_THAT(groups, SizeIs(8));
  for (const StackGroup& group : groups) {
    ASSERT_FALSE(group.stacks.threads.empty());
    EXPECT_EQ(group.stacks.threads.size() + group.omitted_threads, 100U);
    EXPECT_THAT(group.stacks.threads[0].native, SizeIs(1)) << "no frames of the interpreter";
    EXPECT_EQ(group.stacks.threads[0].python[0].function, "step0") << "the innermost one";
    EXPECT_THAT(OmittedInWords(group), HasSubstr(" threads and "));
  }
}

TEST(StackGroupsTest, OmittedFramesAreThoseOfTheThreadsThatAreThere) {
  std::vector<StackGroup> ranks;
  for (int rank = 0; rank < 64; ++rank) ranks.push_back(Large(rank));
  for (const StackGroup& group : Decoded(EncodeStackGroups(ranks, size_t{64} << 10))) {
    const auto& threads = group.stacks.threads;
    ASSERT_FALSE(threads.empty());
    EXPECT_EQ(threads.size() + group.omitted_threads, 100U);
    size_t frames = group.omitted_frames;
    for (const ThreadStack& thread : threads) frames += thread.native.size() + thread.python.size();
    EXPECT_EQ(frames, 51 * threads.size()) << "one native frame and fifty of Python in each";
  }
}

TEST(StackGroupsTest, OfSixtyFourRanksEachIsNamedInAnyRoom) {
  std::vector<StackGroup> ranks;
  for (int rank = 0; rank < 64; ++rank) ranks.push_back(Large(rank));
  for (size_t room : {size_t{64} << 10, size_t{16} << 10, size_t{2} << 10}) {
    const std::string json = EncodeStackGroups(ranks, room);
    EXPECT_LE(json.size(), room);
    size_t named = 0;
    for (const StackGroup& group : Decoded(json)) {
      named += group.ranks.size();
      if (!group.stacks.threads.empty()) continue;
      EXPECT_THAT(group.stacks.note, HasSubstr("had no room"));
    }
    EXPECT_EQ(named, 64U) << room;
  }
  EXPECT_FALSE(DecodeStackGroups(EncodeStackGroups(ranks, 100)));
}

TEST(StackGroupsTest, WordsCountWhatIsLeftOut) {
  EXPECT_EQ(OmittedInWords({}), "");
  EXPECT_EQ(OmittedInWords({.omitted_threads = 1}), "1 thread had no room in the answer");
  EXPECT_EQ(OmittedInWords({.omitted_threads = 2, .omitted_frames = 1}),
            "2 threads and 1 outer frame had no room in the answer");
}

TEST(StackGroupsTest, AnyBytesAreGroupsOrAnError) {
  std::mt19937 random(1);
  const std::string good = EncodeStackGroups({Rank(0, "a"), Ended(1)}, kMaxAnswerBytes);
  for (int i = 0; i < 5'000; ++i) {
    std::string json = good;
    for (size_t n = random() % 4; n > 0; --n) {
      json[random() % json.size()] = static_cast<char>(random());
    }
    json.resize(random() % 8 == 0 ? random() % json.size() : json.size());
    auto groups = DecodeStackGroups(json);
    EXPECT_TRUE(!groups || groups->size() <= 2U);
  }
  for (const char* json :
       {"", "[]", "{}", R"({"groups":[1]})", R"({"groups":[{"ranks":[],"pids":[],"stacks":{}}]})",
        R"({"groups":[{"ranks":[0],"pids":[1,2],"stacks":{"pid":1}}]})",
        R"({"groups":[{"ranks":[-1],"pids":[1],"stacks":{"pid":1}}]})"}) {
    EXPECT_FALSE(DecodeStackGroups(json)) << json;
  }
  EXPECT_EQ(DecodeStackGroups(R"({"error":"no \u001b room"})").error().message, "no \\x1b room");
}

}  // namespace
}  // namespace rankrun::agent
