#include "cli/jobs/job_text.h"

#include <gmock/gmock.h>

namespace rankrun::cli {
namespace {

using agent::NodeStatus;
using agent::WorkerStatus;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint8_t kAllReduce = 1;

WorkerStatus Worker(int rank) {
  WorkerStatus worker{.state = "waiting", .is_alive = true, .seconds = 100};
  worker.sample.global_rank = rank;
  worker.sample.local_rank = rank;
  worker.sample.pid = 4711 + rank;
  worker.sample.process =
      agent::ProcessFacts{.state = 'S', .call = agent::CallKind::kLock, .call_name = "futex"};
  worker.sample.process->resident_bytes = uint64_t{120} << 20;
  return worker;
}

// A worker that has waited in an operation of `world` for 12 s, or has not entered it.
WorkerStatus InOperation(int rank, uint64_t number, bool is_under_way) {
  WorkerStatus worker = Worker(rank);
  if (is_under_way) {
    worker.doing = "in AllReduce #812 of world";
    worker.doing_seconds = 12.4;
  }
  worker.sample.groups.push_back({.name = "world",
                                  .size = 4,
                                  .last = {.kind = kAllReduce, .number = number, .count = 16},
                                  .completed = is_under_way ? number - 1 : number,
                                  .is_under_way = is_under_way,
                                  .since_entered = milliseconds(12'400)});
  return worker;
}

NodeStatus Node(const std::string& name, int node_rank, std::vector<WorkerStatus> workers) {
  NodeStatus node{.job = "job_1", .node = name, .version = "1", .program = "train.py --lr 1"};
  node.agent = 4000;
  node.guardian = 3999;
  node.phase = "running";
  node.attempt = 0;
  node.node_rank = node_rank;
  node.world_size = 4;
  node.seconds = 100;
  node.attempt_seconds = 100;
  node.workers = std::move(workers);
  return node;
}

TEST(JobTextTest, TimesAndSizesAreShort) {
  EXPECT_EQ(ShortTime(-1), "0 ms");
  EXPECT_EQ(ShortTime(0.85), "850 ms");
  EXPECT_EQ(ShortTime(12.9), "12 s");
  EXPECT_EQ(ShortTime(179), "179 s");
  EXPECT_EQ(ShortTime(180), "3 min");
  EXPECT_EQ(ShortTime(5 * 3600 + 1), "5 h");
  EXPECT_EQ(ShortTime(3 * 86400), "3 d");
  EXPECT_EQ(ShortBytes(0), "0 K");
  EXPECT_EQ(ShortBytes(1500 << 10), "1.5 M");
  EXPECT_EQ(ShortBytes(uint64_t{120} << 20), "120 M");
  EXPECT_EQ(ShortBytes(uint64_t{3} << 30), "3.0 G");
}

TEST(JobTextTest, EachJobHasALine) {
  NodeStatus waiting = Node("n", -1, {});
  waiting.job = "other";
  waiting.attempt = -1;
  waiting.phase = "waiting";
  EXPECT_EQ(JobsText({Node("n", 0, {}), waiting}),
            "JOB    PID   NODES  RANKS  ATTEMPT  SINCE  STATE    PROGRAM\n"
            "job_1  3999  1      4      0        100 s  running  train.py --lr 1\n"
            "other  3999  1      4      -        100 s  waiting  train.py --lr 1\n");
}

TEST(JobTextTest, TheStatusHasALineForEachRank) {
  WorkerStatus dead = Worker(1);
  dead.is_alive = false;
  dead.state = "exit code 3";
  dead.seconds = 2;
  WorkerStatus busy = InOperation(0, 812, true);
  busy.last_line = "step 812";
  busy.sample.cpu_time = std::chrono::seconds(50);
  EXPECT_EQ(StatusText({Node("n", 0, {busy, dead})}, {}, 0, 200),
            "job job_1: running, 4 ranks, for 100 s: train.py --lr 1\n"
            "RANK  PID   STATE        SINCE  CPU  MEMORY  DOING                             "
            "LAST LINE\n"
            "0     4711  waiting      100 s  50%  120 M   in AllReduce #812 of world, 12 s  "
            "step 812\n"
            "1     4712  exit code 3  2 s    -    -\n");
}

TEST(JobTextTest, TheShareOfCpuIsThatSinceTheLookBefore) {
  WorkerStatus worker = Worker(0);
  worker.sample.cpu_time = std::chrono::seconds(50);
  CpuTimes before = CpuTimesOf({Node("n", 0, {worker})}, 10);
  worker.sample.cpu_time += milliseconds(900);
  EXPECT_THAT(StatusText({Node("n", 0, {worker})}, before, 11, 200), HasSubstr("  90%  "));
}

TEST(JobTextTest, NodesAreNamedIfThereAreSeveral) {
  std::string text = StatusText({Node("b", 1, {Worker(1)}), Node("a", 0, {Worker(0)})}, {}, 0, 200);
  EXPECT_THAT(text, HasSubstr("RANK  NODE  PID"));
  EXPECT_LT(text.find("0     a "), text.find("1     b ")) << text;
}

TEST(JobTextTest, ASpareIsNamedWithTheReason) {
  NodeStatus spare = Node("b", -1, {});
  spare.waits = "the job has its 1 nodes; this one is a spare: replaced after 2 failures in a row";
  EXPECT_THAT(StatusText({Node("a", 0, {Worker(0)}), spare}, {}, 0, 200),
              HasSubstr("\nb waits: the job has its 1 nodes; this one is a spare: replaced after 2 "
                        "failures in a row\n"));
}

TEST(JobTextTest, ATableOf64RanksFits100Columns) {
  std::vector<WorkerStatus> workers;
  for (int rank = 0; rank < 64; ++rank) {
    workers.push_back(InOperation(rank, 812, true));
    workers.back().last_line = std::string(300, 'x');
  }
  std::string text = StatusText({Node("n", 0, workers)}, {}, 0, 100);
  EXPECT_EQ(std::ranges::count(text, '\n'), 66);
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100u);
    begin = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("in AllReduce #812 of world")) << "the last line gives way first";
}

TEST(JobTextTest, RanksWithoutRoomAreCounted) {
  NodeStatus node = Node("n", 0, {Worker(0)});
  node.omitted = 63;
  EXPECT_THAT(StatusText({node}, {}, 0, 100), HasSubstr("and 63 more ranks\n"));
  EXPECT_THAT(StatusText({}, {}, 0, 100), StartsWith("no node has answered\n"));
}

struct WhyTest : testing::Test {
  WhyTest() {
    WorkerStatus stopped = InOperation(3, 811, false);
    stopped.state = "stopped";
    stopped.sample.process->state = 'T';
    stopped.last_line = "step 811";
    nodes = {Node("n", 0,
                  {InOperation(0, 812, true), InOperation(1, 812, true), InOperation(2, 812, true),
                   stopped})};
  }
  std::vector<NodeStatus> nodes;
};

TEST_F(WhyTest, TheRankThatOthersWaitForComesFirst) {
  std::string text = WhyText(nodes, nodes, 0.05, -1);
  EXPECT_THAT(text, StartsWith("ranks 0-2 wait in "));
  EXPECT_THAT(text, HasSubstr(" for rank 3, which is stopped"));
  EXPECT_THAT(text, HasSubstr("\nranks 0-2: are waiting for a lock (futex), in AllReduce #812"));
  EXPECT_THAT(text, HasSubstr("\nrank 3: is stopped"));
}

TEST_F(WhyTest, OneRankIsShownWithMore) {
  std::string text = WhyText(nodes, nodes, 0.05, 3);
  EXPECT_THAT(text, HasSubstr("\nrank 3 (pid 4714): is stopped"));
  EXPECT_THAT(text, HasSubstr("\nlast line: step 811\n"));
  EXPECT_THAT(text, Not(HasSubstr("ranks 0-2: ")));
}

TEST_F(WhyTest, NobodyIsBlamedIfNobodyWaits) {
  std::vector<NodeStatus> idle = {
      Node("n", 0, {InOperation(0, 812, false), InOperation(1, 812, false)})};
  EXPECT_THAT(WhyText(idle, idle, 0.05, -1), StartsWith("no rank waits for another one\n"));
}

TEST_F(WhyTest, RanksThatShowNothingMayWait) {
  std::vector<NodeStatus> idle = {Node("n", 0, {Worker(0), Worker(1)})};
  EXPECT_THAT(WhyText(idle, idle, 0.05, -1),
              StartsWith("nothing visible: no rank waits in a collective or store that rankrun "
                         "sees\nranks 0, 1: are waiting for a lock (futex)\n"));
  EXPECT_THAT(RanksThatShowNothing(idle), testing::ElementsAre(0, 1));
  EXPECT_THAT(RanksThatShowNothing(nodes), testing::IsEmpty());
}

TEST_F(WhyTest, StacksAndConnectionsShowWaits) {
  WorkerStatus waiting = Worker(0);
  waiting.stacks = {.is_known = true, .collective = "all_reduce", .call = "all_reduce"};
  WorkerStatus late = Worker(1);
  late.stacks = {.is_known = true, .place = "load (train.py:7)"};
  late.sample.dials = {"10.0.0.9:7"};
  const std::vector<NodeStatus> job = {Node("n", 0, {waiting, late})};
  const std::string text = WhyText(job, job, 0.05, -1);
  EXPECT_THAT(text, StartsWith("rank 1 dials 10.0.0.9:7, which does not answer: "));
  EXPECT_THAT(text, HasSubstr("\nrank 0 waits in all_reduce for rank 1, which is waiting for a "
                              "lock (futex), in load (train.py:7)\n"));
  EXPECT_THAT(text, HasSubstr("\nrank 0: is waiting for a lock (futex), in all_reduce\n"));
  EXPECT_THAT(StatusText(job, {}, 0, 200), HasSubstr("dialling 10.0.0.9:7"));
}

TEST_F(WhyTest, TheKeyOfTheStoreForWhichRanksWaitIsNamedHoweverCloseTheTwoLooks) {
  std::vector<NodeStatus> job = {Node("n0", 0, {Worker(0), Worker(1), Worker(2)})};
  for (size_t rank = 1; rank <= 2; ++rank) {
    job[0].workers[rank].sample.store_wait = agent::StoreWait{"never", milliseconds(12'400)};
  }
  for (double apart : {0.01, 0.05, 0.5}) {
    EXPECT_THAT(WhyText(job, job, apart, -1),
                StartsWith("ranks 1, 2 wait for key never of the store, which rank 0 has not set; "
                           "rank 0 is waiting for a lock (futex); for 12.4 s\n"))
        << apart;
  }
}

TEST_F(WhyTest, RanksWhoseGroupsHaveNoRoomAreNeitherBlamedNorIdle) {
  for (WorkerStatus& worker : nodes[0].workers) {
    worker.sample.groups.clear();
    worker.sample.has_all_groups = false;
  }
  EXPECT_THAT(WhyText(nodes, nodes, 0.05, -1),
              StartsWith("ranks 0-3: not all of their groups are known, for lack of room\n"));
  nodes[0].workers.resize(1);
  nodes[0].workers[0].sample.has_all_groups = true;
  nodes[0].omitted = 3;
  EXPECT_THAT(WhyText(nodes, nodes, 0.05, -1),
              StartsWith("3 more ranks are not known, for lack of room\n"));
}

TEST_F(WhyTest, AHundredWaitersThatHaveNoRoomAreNotBlamed) {
  std::vector<WorkerStatus> workers;
  for (int rank = 0; rank < 110; ++rank) {
    workers.push_back(InOperation(rank, rank == 70 ? 811 : 812, rank != 70));
    workers.back().sample.groups[0].size = 110;
  }
  auto read = agent::DecodeStatus(EncodeStatus(Node("n", 0, workers), 64 * 1024));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->workers.size(), 110u);
  std::string text = WhyText({*read}, {*read}, 0.05, -1);
  EXPECT_THAT(text, StartsWith("rank 0 waits in "));
  EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr(" for rank 70, which "));
  EXPECT_THAT(text, HasSubstr("ranks 1-69, 71-109: not all of their groups are known"));
}

TEST_F(WhyTest, ARankThatComputesIsSeenByItsTime) {
  std::vector<NodeStatus> later = nodes;
  for (auto* look : {&nodes, &later}) {
    (*look)[0].workers[3].sample.process->state = 'R';
    (*look)[0].workers[3].sample.process->call = agent::CallKind::kNone;
  }
  later[0].workers[3].sample.cpu_time += milliseconds(50);
  EXPECT_THAT(WhyText(nodes, later, 0.05, -1), HasSubstr("for rank 3, which "));
  EXPECT_THAT(WhyText(nodes, later, 0.05, 3), Not(HasSubstr("stopped (SIGSTOP)")));
}

}  // namespace
}  // namespace rankrun::cli
