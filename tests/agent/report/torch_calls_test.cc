#include "agent/report/torch_calls.h"

#include <gmock/gmock.h>

#include "tests/agent/report/pickled.h"

namespace rankrun::agent {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::system_clock;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr system_clock::time_point kNow{seconds(1'700'000'000)};

struct Call {
  std::string name;
  int64_t sequence;
  bool is_done = true;
  std::string group = "0";
  std::string description = "default_pg";
  bool is_message = false;
  int64_t seconds_ago = 10;
};

// An entry, as torch 2.13 writes it; the fields that are not read are left out.
std::string EntryOf(const Call& call) {
  const auto created = nanoseconds(kNow.time_since_epoch() - seconds(call.seconds_ago)).count();
  return pickled::Dict({{"process_group", pickled::Tuple(pickled::Text(call.group),
                                                         pickled::Text(call.description))},
                        {"collective_seq_id", pickled::Int(call.sequence)},
                        {"profiling_name", pickled::Text(call.name)},
                        {"time_created_ns", pickled::Int(created)},
                        {"state", pickled::Text("scheduled")},
                        {"retired", pickled::Bool(call.is_done)},
                        {"is_p2p", pickled::Bool(call.is_message)}});
}

TorchDump Dump(const std::vector<Call>& calls) {
  std::vector<std::string> entries;
  for (const Call& call : calls) entries.push_back(EntryOf(call));
  return ReadTorchDump(pickled::Whole(pickled::Dict({{"version", pickled::Text("2.10")},
                                                     {"entries", pickled::List(entries)}})),
                       kNow);
}

std::vector<std::string> Words(const TorchDump& dump) {
  std::vector<std::string> words;
  for (const GroupCall& call : dump.calls) {
    words.push_back(call.what + " of " + call.group + (call.is_done ? "" : ", under way"));
  }
  return words;
}

TEST(TorchCallsTest, TheLastCallOfEachGroupCounts) {
  TorchDump dump = Dump({{"nccl:all_reduce", 1},
                         {"nccl:broadcast", 1, true, "3", "pair"},
                         {"nccl:all_reduce", 2},
                         {"nccl:all_gather", 3, false, "0", "default_pg", false, 7}});
  EXPECT_THAT(Words(dump), ElementsAre("all_gather #3 of default_pg, under way"))
      << "the ranks of pair are unknown";
  EXPECT_EQ(dump.activity.what, "all_gather #3 of default_pg");
  EXPECT_EQ(dump.activity.lasted, seconds(7));
  ASSERT_EQ(dump.last_operations.size(), 3u);
  EXPECT_EQ(dump.last_operations[0].what, "broadcast #1");
  EXPECT_FALSE(dump.last_operations[1].is_under_way);
  EXPECT_TRUE(dump.last_operations[2].is_under_way);
  EXPECT_EQ(dump.last_operations[2].ago, seconds(7));
}

TEST(TorchCallsTest, AMessageCountsWhileItIsUnderWay) {
  TorchDump ended = Dump({{"nccl:all_reduce", 1}, {"nccl:send 0->1", 1, true, "0", "", true}});
  EXPECT_THAT(Words(ended), ElementsAre("all_reduce #1 of default_pg"));
  TorchDump waits =
      Dump({{"nccl:all_reduce", 1}, {"nccl:recv 1<-0", 1, false, "0", "default_pg", true}});
  EXPECT_THAT(Words(waits),
              ElementsAre("all_reduce #1 of default_pg", "recv 1<-0 of default_pg, under way"));
  EXPECT_TRUE(waits.calls[1].is_message);
}

TEST(TorchCallsTest, TextsOfAnotherProgramDoNotReachATerminal) {
  TorchDump dump = Dump({{"nccl:\x1b[2J" + std::string(500, 'x'), 1, false, "0", "a\nb"}});
  ASSERT_EQ(dump.calls.size(), 1u);
  EXPECT_EQ(dump.calls[0].group, "a?b");
  EXPECT_EQ(dump.calls[0].what.substr(0, 5), "?[2Jx");
  EXPECT_LT(dump.calls[0].what.size(), 80u);
}

TEST(TorchCallsTest, AnythingElseIsEmpty) {
  for (const std::string& bytes :
       {std::string(), std::string("{\"entries\": []}"), pickled::Whole(pickled::Text("x")),
        pickled::Whole(pickled::Dict({{"entries", pickled::Int(3)}})),
        pickled::Whole(
            pickled::Dict({{"entries", pickled::List({pickled::Int(3), pickled::Dict({})})}}))}) {
    TorchDump dump = ReadTorchDump(bytes, kNow);
    EXPECT_THAT(dump.calls, IsEmpty());
    EXPECT_THAT(dump.last_operations, IsEmpty());
    EXPECT_EQ(dump.activity.what, "");
  }
}

TEST(TorchCallsTest, TheVariablesNameTheFiles) {
  EXPECT_THAT(TorchDumpFiles({}, "/logs/a_", 7), ElementsAre("/logs/a_7"));
  EXPECT_THAT(TorchDumpFiles({}, "", 7), IsEmpty());
  EXPECT_THAT(TorchDumpFiles({"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/d/old"}, "/logs/a_", 7),
              ElementsAre("/d/old7"));
  EXPECT_THAT(
      TorchDumpFiles({"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/d/old", "TORCH_FR_DUMP_TEMP_FILE=/d/new"},
                     "/logs/a_", 7),
      ElementsAre("/d/new7"));
}

}  // namespace
}  // namespace rankrun::agent
