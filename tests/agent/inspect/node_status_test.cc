#include "agent/inspect/node_status.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

WorkerStatus Worker(int rank) {
  WorkerStatus worker{.state = "waiting", .is_alive = true, .seconds = 2.5};
  worker.doing = "in AllReduce #12 of world";
  worker.doing_seconds = 1.25;
  worker.last_line = "step 12";
  WorkerSample& sample = worker.sample;
  sample.global_rank = rank;
  sample.local_rank = rank;
  sample.pid = 4711 + rank;
  sample.cpu_time = std::chrono::milliseconds(1500);
  sample.awaited = "a message";
  sample.awaited_rank = 3;
  sample.store_wait = StoreWait{"key", std::chrono::seconds(4)};
  sample.process = ProcessFacts{.state = 'S', .call = CallKind::kLock, .call_name = "futex"};
  sample.process->resident_bytes = 1 << 20;
  sample.groups.push_back({.name = "world",
                           .size = 4,
                           .last = {.kind = 3, .dtype = 2, .op = 1, .number = 12, .count = 16},
                           .completed = 11,
                           .is_under_way = true,
                           .since_entered = std::chrono::milliseconds(1250)});
  return worker;
}

NodeStatus Node(int workers) {
  NodeStatus node{.job = "j", .node = "n1", .version = "1", .program = "train.py"};
  node.agent = 7;
  node.phase = "running";
  node.attempt = 2;
  node.node_rank = 1;
  for (int rank = 0; rank < workers; ++rank) node.workers.push_back(Worker(rank));
  return node;
}

TEST(NodeStatusTest, AStatusSurvivesEncodingAndDecoding) {
  std::string json = EncodeStatus(Node(3), 64 * 1024);
  auto read = DecodeStatus(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(EncodeStatus(*read, 64 * 1024), json);
  ASSERT_EQ(read->workers.size(), 3u);
  const WorkerSample& sample = read->workers[1].sample;
  EXPECT_EQ(sample.pid, 4712);
  EXPECT_EQ(sample.cpu_time, std::chrono::milliseconds(1500));
  EXPECT_EQ(sample.process->call, CallKind::kLock);
  EXPECT_EQ(sample.process->state, 'S');
  EXPECT_EQ(sample.store_wait->key, "key");
  EXPECT_EQ(sample.groups.at(0).last.number, 12u);
  EXPECT_TRUE(sample.groups[0].is_under_way);
}

TEST(NodeStatusTest, AStatusOf64WorkersHasRoomForAllThatIsKnown) {
  auto read = DecodeStatus(EncodeStatus(Node(64), 64 * 1024));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->workers.size(), 64u);
  EXPECT_EQ(read->workers[63].last_line, "step 12");
  EXPECT_EQ(read->workers[63].sample.groups.size(), 1u);
}

TEST(NodeStatusTest, WorkersWithoutRoomAreLeftOutAndCounted) {
  for (size_t room : {40'000u, 20'000u, 5'000u, 1'000u}) {
    std::string json = EncodeStatus(Node(64), room);
    EXPECT_LE(json.size(), room);
    auto read = DecodeStatus(json);
    ASSERT_TRUE(read);
    EXPECT_EQ(static_cast<int>(read->workers.size()) + read->omitted, 64);
  }
}

// Ranks wait in an operation, except for the last one.
NodeStatus NodeThatWaits(int workers) {
  NodeStatus node = Node(workers);
  GroupActivity& late = node.workers.back().sample.groups[0];
  late.is_under_way = false;
  late.last.number = 11;
  return node;
}

TEST(NodeStatusTest, AtTheLimitOneRankTellsOfAnOperationAndTheLateOneIsKept) {
  NodeStatus node = NodeThatWaits(110);
  auto read = DecodeStatus(EncodeStatus(node, 64 * 1024));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->workers.size(), 110u);
  auto sample = [&](size_t i) { return read->workers[i].sample; };
  EXPECT_EQ(sample(0).groups.size(), 1u);
  EXPECT_TRUE(sample(0).has_all_groups);
  EXPECT_EQ(sample(1).groups.size(), 0u);
  EXPECT_FALSE(sample(1).has_all_groups);
  EXPECT_EQ(sample(109).groups.at(0).last.number, 11u);
  EXPECT_TRUE(sample(109).has_all_groups);
}

TEST(NodeStatusTest, AWorkerWithoutItsGroupsSaysSoAtEachSize) {
  NodeStatus node = NodeThatWaits(40);
  for (WorkerStatus& worker : node.workers) {
    for (int i = 0; i < 6; ++i) {
      GroupActivity idle = worker.sample.groups[0];
      idle.name = "idle" + std::to_string(i);
      idle.is_under_way = false;
      idle.last.number = 5;
      worker.sample.groups.push_back(idle);
    }
  }
  for (size_t room = 70'000; room > 500; room -= 1'000) {
    auto read = DecodeStatus(EncodeStatus(node, room));
    ASSERT_TRUE(read);
    for (const WorkerStatus& worker : read->workers) {
      EXPECT_EQ(worker.sample.has_all_groups, worker.sample.groups.size() == 7) << room;
    }
    if (room < 30'000 || read->workers.empty()) continue;
    ASSERT_FALSE(read->workers[0].sample.groups.empty()) << room;
    EXPECT_EQ(read->workers[0].sample.groups[0].name, "world") << "the one in an operation stays";
  }
}

TEST(NodeStatusTest, InLittleRoomALongProgramIsCutAndTheNodeStillAnswers) {
  NodeStatus node = Node(64);
  node.program = std::string(1024, 'p');
  node.store_clients.resize(100);
  std::string json = EncodeStatus(node, 800);
  EXPECT_LE(json.size(), 800u);
  auto read = DecodeStatus(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program, std::string(64, 'p'));
  EXPECT_EQ(static_cast<int>(read->workers.size()) + read->omitted, 64);
}

TEST(NodeStatusTest, AWaitAtTheStoreOfAnotherNodeIsThatOfItsWorker) {
  NodeStatus host = Node(1);
  NodeStatus guest = Node(2);
  host.store_clients.push_back({.key = "k", .port = 40'001, .lasted = std::chrono::seconds(3)});
  guest.workers[1].sample.store_ports = {40'000, 40'001};
  std::vector<NodeStatus> nodes;
  for (const NodeStatus& node : {host, guest}) {
    auto read = DecodeStatus(EncodeStatus(node, 64 * 1024));
    ASSERT_TRUE(read);
    nodes.push_back(*read);
  }
  ShareStoreWaits(nodes);
  EXPECT_FALSE(nodes[0].workers[0].sample.store_wait);
  EXPECT_FALSE(nodes[1].workers[0].sample.store_wait);
  ASSERT_TRUE(nodes[1].workers[1].sample.store_wait);
  EXPECT_EQ(nodes[1].workers[1].sample.store_wait->key, "k");
}

TEST(NodeStatusTest, TextsOfOtherNodesDoNotControlTheTerminal) {
  NodeStatus node = Node(1);
  node.node = "n\x1b[2J";
  node.workers[0].last_line = "a\x1b]0;b\n\xff";
  auto read = DecodeStatus(EncodeStatus(node, 64 * 1024));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->node.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->workers[0].last_line.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->workers[0].last_line.find('\n'), std::string::npos);
}

TEST(NodeStatusTest, OtherFormsAreErrors) {
  for (const char* json :
       {"", "[]", "7", R"({"job":7})", R"({"workers":{}})", R"({"workers":[7]})",
        R"({"workers":[{"rank":"0"}]})", R"({"workers":[{"process":{"state":"RS"}}]})",
        R"({"workers":[{"process":{"call_kind":99}}]})", R"({"workers":[{"cpu_seconds":-1}]})",
        R"({"workers":[{"groups":[{"number":-5}]}]})"}) {
    EXPECT_FALSE(DecodeStatus(json)) << json;
  }
  EXPECT_TRUE(DecodeStatus("{}"));
}

}  // namespace
}  // namespace rankrun::agent
