#include "agent/nodes/job_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "agent/nodes/control_codec.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint8_t kBarrier = 9;
constexpr int kRound = 3;
constexpr TimePoint kStart{seconds(1'000)};

WorkerSample Worker(int rank, bool waits, Duration since) {
  return {.node = "n" + std::to_string(rank),
          .global_rank = rank,
          .pid = 100 + rank,
          .groups = {{.name = "world",
                      .size = 2,
                      .last = {.kind = kBarrier, .number = waits ? 7U : 6U},
                      .completed = 6,
                      .is_under_way = waits,
                      .since_entered = waits ? since : Duration()}},
          .process = ProcessFacts{.state = waits ? 'S' : 'T'}};
}

NodeSamples Samples(WorkerSample worker) {
  return {.world_size = 2, .workers = {std::move(worker)}};
}

template <typename T>
std::optional<T> Find(const std::vector<HealthOrder>& orders) {
  for (const HealthOrder& order : orders) {
    if (const T* found = std::get_if<T>(&order)) return *found;
  }
  return std::nullopt;
}

class JobHealthTest : public ::testing::Test {
 protected:
  JobHealthTest() { health_.BeginRound(kRound, kStart); }

  std::vector<HealthOrder> Send(int rank, bool waits, Duration since, int round = kRound) {
    return health_.OnSamples(static_cast<uint64_t>(rank + 1), round,
                             Samples(Worker(rank, waits, since)), kStart + since);
  }

  JobHealth health_{{.notice = seconds(10), .timeout = seconds(30)}};
};

TEST_F(JobHealthTest, AsksAllNodesOnceASecondAndJudgesTheSamplesOfAll) {
  auto orders = Send(0, true, seconds(5));
  ASSERT_TRUE(Find<HealthWanted>(orders));
  EXPECT_EQ(Find<HealthWanted>(orders)->round, kRound);
  EXPECT_FALSE(Find<HealthWanted>(Send(1, false, seconds(5))));
  EXPECT_TRUE(Find<HealthWanted>(Send(0, true, seconds(6))));
  std::optional<HangNotice> notice;
  std::optional<HangFound> found;
  for (int second = 7; second <= 31; ++second) {
    for (int rank : {0, 1}) {
      auto sent = Send(rank, rank == 0, seconds(second));
      if (auto first = Find<HangNotice>(sent); first && !notice) notice = first;
      if (auto verdict = Find<HangFound>(sent)) found = verdict;
    }
  }
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->text,
            "rank 0 waits in Barrier #7 of world for rank 1, which is stopped (SIGSTOP) after "
            "Barrier #6 of world; for 10.0 s");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranks.size(), 1U);
  EXPECT_EQ(found->ranks[0].rank, 1);
  EXPECT_EQ(found->round, kRound);
}

TEST_F(JobHealthTest, JudgesNothingWithoutTheSamplesOfAllNodes) {
  for (int second = 5; second <= 60; ++second) {
    auto orders = Send(0, true, seconds(second));
    EXPECT_FALSE(Find<HangNotice>(orders));
    EXPECT_FALSE(Find<HangFound>(orders));
  }
  EXPECT_FALSE(Find<HangFound>(Send(1, false, seconds(60))))
      << "a node that was silent for long may have been stopped by its user";
}

TEST_F(JobHealthTest, AMessageOfEachNodeIsWantedBeforeTheNextLook) {
  Send(0, true, seconds(8));
  Send(1, false, seconds(8));
  Send(0, true, seconds(9));  // a look
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Find<HangNotice>(Send(0, true, seconds(10) + milliseconds(i)))) << i;
  }
  EXPECT_TRUE(Find<HangNotice>(Send(1, false, seconds(10) + milliseconds(100))));
}

TEST_F(JobHealthTest, LooksWithoutANodeThatIsSilentForAWhile) {
  Send(0, true, milliseconds(8'500));
  Send(1, false, milliseconds(8'500));
  Send(0, true, milliseconds(9'500));  // a look
  EXPECT_FALSE(Find<HangNotice>(Send(0, true, milliseconds(10'500))));
  EXPECT_TRUE(Find<HangNotice>(Send(0, true, milliseconds(11'500))));
}

TEST_F(JobHealthTest, WorkIsMeasuredByTheClockOfItsNode) {
  std::optional<HangFound> found;
  std::optional<int> second_found;
  for (int second = 1; second <= 40 && !found; ++second) {
    for (int rank : {0, 1}) {
      // Threads in the background use 1.2 % of a core. The clocks of both hosts differ.
      const Duration on_node = seconds(second) + std::chrono::hours(1'000 * rank);
      WorkerSample worker{.node = "n" + std::to_string(rank),
                          .taken = TimePoint(on_node),
                          .global_rank = rank,
                          .pid = 100 + rank,
                          .cpu_time = milliseconds(12 * second),
                          .process = ProcessFacts{.state = 'S', .call = CallKind::kSleep}};
      // The message of the second node follows that of the first one.
      auto orders = health_.OnSamples(static_cast<uint64_t>(rank + 1), kRound, Samples(worker),
                                      kStart + seconds(second) + milliseconds(5 * rank));
      if (auto verdict = Find<HangFound>(orders)) found = verdict;
      if (found && !second_found) second_found = second;
    }
  }
  ASSERT_TRUE(found);
  EXPECT_LE(*second_found, 33);
  ASSERT_EQ(found->ranks.size(), 2U);
  EXPECT_THAT(found->text, testing::HasSubstr("sleeping"));
}

TEST_F(JobHealthTest, ANodeWithWorkersReportsThatOthersWaitForOneThatHasEnded) {
  std::optional<HangFound> found;
  for (int second = 1; second <= 40 && !found; ++second) {
    const TimePoint now = kStart + seconds(second);
    NodeSamples ended = Samples({.node = "n0", .global_rank = 0, .has_ended = true});
    found = Find<HangFound>(health_.OnSamples(1, kRound, std::move(ended), now));
    if (!found) found = Find<HangFound>(Send(1, true, seconds(second)));
  }
  ASSERT_TRUE(found);
  EXPECT_THAT(found->text, testing::HasSubstr("rank 0, which is no longer running (exit code 0)"));
  EXPECT_TRUE(found->ranks.empty());
  EXPECT_EQ(found->reporter, 1);
}

TEST_F(JobHealthTest, ARankThatHasEndedIsAwaitedIfAnotherIsSeenToWaitForIt) {
  const auto send_ended = [&](TimePoint now) {
    health_.OnSamples(1, kRound, Samples({.node = "n0", .global_rank = 0, .has_ended = true}), now);
    return health_.AwaitedEnd(now);
  };
  EXPECT_EQ(send_ended(kStart + seconds(7)), "") << "not all samples are there";
  Send(1, true, seconds(7));
  EXPECT_EQ(send_ended(kStart + seconds(8)),
            "rank 0 ended with exit code 0 while rank 1 waits for it in Barrier #7 of world");
  EXPECT_EQ(health_.AwaitedEnd(kStart + seconds(9)), "") << "of that look only";
  Send(1, false, seconds(9));
  EXPECT_EQ(send_ended(kStart + seconds(10)), "");
}

TEST_F(JobHealthTest, ANodeWhoseWorkersSleepAfterThoseOfAnotherIsNoticed) {
  std::optional<HangNotice> notice;
  for (int second = 5; second <= 11 && !notice; ++second) {
    const TimePoint now = kStart + seconds(second);
    WorkerSample sleeping{.node = "n1", .global_rank = 1, .pid = 101};
    sleeping.process = ProcessFacts{.state = 'S', .call = CallKind::kSleep};
    notice = Find<HangNotice>(health_.OnSamples(2, kRound, Samples(sleeping), now));
    if (notice) break;
    WorkerSample ended{.node = "n0", .global_rank = 0, .has_ended = true};
    ended.ended_for = seconds(second);
    notice = Find<HangNotice>(health_.OnSamples(1, kRound, Samples(ended), now));
  }
  ASSERT_TRUE(notice);
  EXPECT_EQ(
      notice->text,
      "rank 0 ended 10.0 s ago with exit code 0; rank 1 still runs, and nothing visible shows "
      "whether it waits for rank 0; rank 1 is sleeping");
}

// Two ranks of PyTorch without librankrun wait for each other's connection.
struct JobStacksTest : JobHealthTest {
  // Sends samples until there is an order other than for samples; returns when.
  TimePoint Still(bool has_first_ended = false) {
    for (int second = 1; second <= 60; ++second) {
      const TimePoint now = kStart + seconds(second);
      for (int rank : {0, 1}) {
        WorkerSample worker{.node = "n",
                            .global_rank = rank,
                            .pid = 100 + rank,
                            .has_ended = has_first_ended && rank == 0,
                            .process = ProcessFacts{.state = 'S', .call = CallKind::kPeer}};
        for (const HealthOrder& order :
             health_.OnSamples(static_cast<uint64_t>(rank + 1), kRound, Samples(worker), now)) {
          if (!std::holds_alternative<HealthWanted>(order)) orders.push_back(order);
        }
        if (!orders.empty()) return now;
      }
    }
    return kStart;
  }
  static RankDigest In(int rank, const std::string& collective) {
    return {rank, {.is_known = true, .collective = collective, .place = "wait4()"}};
  }

  std::vector<HealthOrder> orders;
};

TEST_F(JobStacksTest, AVerdictWithoutACauseWaitsForTheStacksOfAllNodes) {
  const TimePoint now = Still();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(std::get<StacksWanted>(orders[0]), StacksWanted{kRound});
  EXPECT_EQ(health_.deadline(), now + JobHealth::kStacksTimeout);
  EXPECT_TRUE(health_.OnStacks(1, kRound, {In(0, "barrier")}).empty());
  EXPECT_TRUE(health_.OnStacks(1, kRound, {In(1, "barrier")}).empty()) << "it has answered";
  auto found = Find<HangFound>(health_.OnStacks(2, kRound, {In(1, ""), In(0, "")}));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranks.size(), 1U);
  EXPECT_EQ(found->ranks[0].rank, 1);
  EXPECT_THAT(found->ranks[0].why,
              testing::StartsWith("in wait4(), while all others are in barrier; no worker has"));
  EXPECT_THAT(found->text, testing::HasSubstr("; rank 1 is in wait4(), while all others"));
  EXPECT_EQ(health_.deadline(), std::nullopt);
}

TEST_F(JobStacksTest, TheLastRankThatRunsIsBlamedIfItIsExiting) {
  Still(true);
  ASSERT_EQ(orders.size(), 1U);
  ASSERT_TRUE(std::holds_alternative<StacksWanted>(orders[0]));
  RankDigest exiting = In(1, "");
  exiting.digest.is_exiting = true;
  auto found = Find<HangFound>(health_.OnStacks(2, kRound, {exiting}));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranks.size(), 1U);
  EXPECT_EQ(found->ranks[0].rank, 1);
  EXPECT_EQ(found->ranks[0].why, "exiting, in wait4(); all others have ended");
}

TEST_F(JobStacksTest, NobodyIsNamedWithoutTheStacksOfANode) {
  const TimePoint now = Still();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_TRUE(health_.OnStacks(2, kRound, {In(1, "")}).empty());
  EXPECT_TRUE(health_.OnStacks(3, kRound, {In(0, "barrier")}).empty()) << "a stranger";
  EXPECT_TRUE(health_.OnStacks(1, kRound - 1, {In(0, "barrier")}).empty()) << "an earlier round";
  EXPECT_TRUE(health_.OnTick(now + milliseconds(2'999)).empty());
  auto found = Find<HangFound>(health_.OnTick(now + JobHealth::kStacksTimeout));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ranks.empty());
  EXPECT_EQ(found->reporter, 0);
  EXPECT_TRUE(health_.OnStacks(1, kRound, {In(0, "barrier")}).empty()) << "late";
}

TEST_F(JobStacksTest, NobodyIsNamedIfANodeLeavesOutOneOfItsRanks) {
  const TimePoint now = Still();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_TRUE(health_.OnStacks(1, kRound, {In(0, "barrier")}).empty());
  auto found = Find<HangFound>(health_.OnStacks(2, kRound, {}));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ranks.empty());
  EXPECT_TRUE(health_.OnTick(now + JobHealth::kStacksTimeout).empty()) << "one verdict is enough";
}

TEST_F(JobStacksTest, TheNextRoundForgetsTheComparison) {
  const TimePoint now = Still();
  health_.BeginRound(kRound + 1, now);
  EXPECT_EQ(health_.deadline(), std::nullopt);
  EXPECT_TRUE(health_.OnTick(now + seconds(60)).empty());
}

TEST_F(JobHealthTest, IgnoresSamplesOfAnEarlierRound) {
  EXPECT_TRUE(Send(0, true, seconds(5), kRound - 1).empty());
}

TEST_F(JobHealthTest, WaitsOfAnEarlierRoundDoNotCount) {
  Send(0, true, seconds(31));
  Send(1, false, seconds(31));
  health_.BeginRound(kRound + 1, kStart + seconds(40));
  Send(0, true, seconds(41), kRound + 1);
  EXPECT_FALSE(Find<HangFound>(Send(1, false, seconds(41), kRound + 1)));
}

TEST(HealthCodecTest, SamplesSurviveEncodingAndDecoding) {
  NodeSamples samples = Samples(Worker(1, true, seconds(3)));
  WorkerSample& worker = samples.workers[0];
  worker.taken = TimePoint(std::chrono::hours(100'000) + milliseconds(7));
  worker.is_saving = true;
  worker.uses_library = true;
  worker.groups[0].unawaited = seconds(1);
  worker.cpu_time = seconds(9);
  worker.awaited = "a message";
  worker.awaited_rank = 4;
  worker.awaited_for = seconds(2);
  worker.store_ports = {7, 8};
  worker.process = ProcessFacts{.state = 'D',
                                .wait_channel = "nfs_wait",
                                .call = CallKind::kFile,
                                .call_name = "read",
                                .file = "/nfs/x",
                                .file_detail = "on the NFS server nas:/x",
                                .tracer = 5,
                                .tracer_name = "gdb",
                                .resident_bytes = 6,
                                .io_bytes = 7};
  samples.clients = {{"key", 7, seconds(5)}};
  auto read = DecodeHealth(EncodeHealth(samples));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(EncodeHealth(*read), EncodeHealth(samples));
  EXPECT_EQ(read->workers[0].groups[0].last.number, 7U);
  EXPECT_EQ(read->workers[0].groups[0].awaited_for(), seconds(2));
  EXPECT_TRUE(read->workers[0].uses_library);
  EXPECT_EQ(read->workers[0].process->state, 'D');
  EXPECT_EQ(read->workers[0].taken, worker.taken);
  EXPECT_EQ(read->clients[0].key, "key");
}

TEST(HealthCodecTest, TextsOfOtherNodesDoNotControlTheTerminal) {
  const std::string evil = "a\x1b[2J\nb";
  const std::string safe = "a\\x1b[2J\\nb";
  NodeSamples samples = Samples(Worker(1, true, seconds(3)));
  WorkerSample& worker = samples.workers[0];
  worker.node = worker.awaited = worker.groups[0].name = evil;
  worker.process = ProcessFacts{.wait_channel = evil,
                                .call_name = evil,
                                .file = evil,
                                .file_detail = evil,
                                .tracer_name = evil};
  samples.clients = {{evil, 7, seconds(5)}};
  auto read = DecodeHealth(EncodeHealth(samples));
  ASSERT_TRUE(read) << read.error().message;
  const WorkerSample& decoded = read->workers.at(0);
  for (const std::string& text :
       {decoded.node, decoded.awaited, decoded.groups.at(0).name, decoded.process->wait_channel,
        decoded.process->call_name, decoded.process->file, decoded.process->file_detail,
        decoded.process->tracer_name, read->clients.at(0).key}) {
    EXPECT_EQ(text, safe);
  }
  auto notice = DecodeCoordinatorMessage(Encode(CoordinatorMessage(HangNotice{evil})));
  auto found =
      DecodeCoordinatorMessage(Encode(CoordinatorMessage(HangFound{1, evil, {{2, evil}}})));
  ASSERT_TRUE(notice && found);
  EXPECT_EQ(std::get<HangNotice>(*notice).text, safe);
  EXPECT_EQ(std::get<HangFound>(*found), (HangFound{1, safe, {{2, safe}}}));
}

TEST(HealthCodecTest, ManyGroupsAreCutAndThatIsMarked) {
  NodeSamples samples{.world_size = 64};
  for (int rank = 0; rank < 64; ++rank) {
    WorkerSample worker = Worker(rank, true, seconds(1));
    for (int i = 0; i < 200; ++i) {
      GroupActivity group = worker.groups[0];
      group.name = "group" + std::to_string(i);
      group.is_under_way = false;
      worker.groups.push_back(std::move(group));
    }
    samples.workers.push_back(std::move(worker));
  }
  std::string bytes = EncodeHealth(samples);
  EXPECT_LE(bytes.size(), kMaxHealthBytes);
  auto read = DecodeHealth(bytes);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->workers.size(), 64U);
  EXPECT_EQ(read->workers[0].groups[0].name, "world") << "operations under way come first";
  EXPECT_FALSE(read->workers[0].has_all_groups);
}

TEST(HealthCodecTest, DigestsOfStacksSurviveEncodingAndDecoding) {
  const StackDigest barrier{
      .is_known = true, .is_exiting = true, .collective = "barrier", .place = "poll()"};
  const StackDigest unknown;
  const std::vector<RankDigest> digests = {{3, barrier}, {5, barrier}, {4, unknown}};
  auto read = DecodeDigests(EncodeDigests(digests));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, digests);
  auto none = DecodeDigests(EncodeDigests({}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  read = DecodeDigests(EncodeDigests({{1, {.collective = "\x1b[2J", .place = "a\nb"}}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).digest.collective, "\\x1b[2J");
  EXPECT_EQ(read->at(0).digest.place, "a\\nb");
}

TEST(HealthCodecTest, DigestsAreBounded) {
  std::string wide;
  for (int i = 0; i < 5'000; ++i) wide += "\xf0\x9f\x98\x80";
  std::vector<RankDigest> digests;
  for (int rank = 0; rank < 500; ++rank) {
    digests.push_back({rank, {.collective = std::to_string(rank) + wide, .place = wide}});
  }
  const std::string bytes = EncodeDigests(digests);
  EXPECT_LE(bytes.size(), kMaxDigestBytes);
  auto read = DecodeDigests(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), kMaxDigestRanks);
  EXPECT_FALSE(DecodeDigests(""));
  EXPECT_FALSE(DecodeDigests("\xa0"));
  EXPECT_FALSE(DecodeDigests(std::string(kMaxDigestBytes + 1, 'x')));
}

TEST(HealthCodecTest, GarbageIsAnError) {
  EXPECT_FALSE(DecodeHealth(""));
  EXPECT_FALSE(DecodeHealth("\xa0"));
  EXPECT_FALSE(DecodeHealth(std::string(kMaxHealthBytes + 1, 'x')));
}

}  // namespace
}  // namespace rankrun::agent
