#include "agent/report/behind_rank.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/report/verdict.h"

namespace rankrun::agent {
namespace {

GroupCall Done(int64_t sequence, const std::string& name = "all_reduce",
               const std::string& group = "world") {
  return {group, name + " #" + std::to_string(sequence), sequence, false, true};
}
GroupCall Waits(int64_t sequence, const std::string& name = "all_reduce",
                const std::string& group = "world") {
  GroupCall call = Done(sequence, name, group);
  call.is_done = false;
  return call;
}
GroupCall Receives() { return {"world", "recv 2<-0", 1, true, false}; }

// Returns the rank that the endings of the waiting ranks name; -1: none.
int Named(const std::vector<std::vector<GroupCall>>& calls) {
  AttemptRecord record;
  for (const auto& of_rank : calls) {
    WorkerRecord& worker = record.workers.emplace_back();
    worker.global_rank = static_cast<int>(record.workers.size()) - 1;
    worker.calls = of_rank;
    worker.ending = Ending{.kind = EndKind::kTimedOut};
  }
  NoteRankBehind(record);
  int named = -1;
  for (const WorkerRecord& worker : record.workers)
    named = std::max(named, worker.ending->lost_rank);
  return named;
}

TEST(BehindRankTest, NamesTheRankThatHasNotCalledIt) {
  EXPECT_EQ(Named({{Waits(4)}, {Done(3)}, {Waits(4)}}), 1);
  EXPECT_EQ(Named({{Waits(4)}, {Done(3)}}), 1);
  EXPECT_EQ(Named({{Done(3)}, {Done(3)}}), -1) << "nobody waits";
  EXPECT_EQ(Named({{Waits(4)}, {Waits(4)}}), -1) << "all have called it";
  EXPECT_EQ(Named({{Waits(4)}, {Done(3)}, {Done(3)}}), -1) << "two are missing";
}

TEST(BehindRankTest, ARankThatWaitsItselfIsNotMissing) {
  // Rank 2 waits for rank 3 in a part of the world; the others wait for both.
  EXPECT_EQ(Named({{Waits(4)},
                   {Waits(4)},
                   {Done(3), Waits(9, "all_gather", "pair")},
                   {Done(3), Done(8, "all_gather", "pair")}}),
            3);
  EXPECT_EQ(Named({{Done(3)}, {Done(3), Receives()}, {Waits(4)}}), 0) << "rank 1 waits for it";
  EXPECT_EQ(Named({{Waits(4)}, {Done(3), Receives()}}), -1);
}

TEST(BehindRankTest, NobodyIsNamedWhileTheCallsOfARankAreUnknown) {
  EXPECT_EQ(Named({{Waits(4)}, {}, {Waits(4)}}), -1);
  EXPECT_EQ(Named({{Waits(4)}, {}, {Done(3)}, {Waits(4)}}), -1) << "rank 1 or rank 2";
}

TEST(BehindRankTest, NamesTheRankWithAnotherCall) {
  EXPECT_EQ(Named({{Waits(4)}, {Waits(4, "broadcast")}, {Waits(4)}}), 1);
  EXPECT_EQ(Named({{Waits(4)}, {Waits(4, "broadcast")}}), -1) << "one of them is right";
  EXPECT_EQ(Named({{Waits(4)}, {Waits(4, "barrier")}, {Waits(4, "broadcast")}}), -1);
  EXPECT_EQ(Named({{Done(4)}, {Done(4, "broadcast")}, {Done(4)}}), -1) << "nobody waits";
  EXPECT_EQ(Named({{Waits(4)}, {Done(6, "broadcast")}, {Waits(4)}}), -1) << "another number";
}

TEST(BehindRankTest, AReportThatLeavesWorkersOutNamesNobody) {
  AttemptRecord record;
  for (int rank = 0; rank < 2; ++rank) {
    WorkerRecord& worker = record.workers.emplace_back();
    worker.global_rank = rank;
    worker.calls = {rank == 0 ? Waits(4) : Done(3)};
    worker.ending = Ending{.kind = EndKind::kTimedOut};
  }
  record.left_out.emplace_back();
  NoteRankBehind(record);
  EXPECT_EQ(record.workers[0].ending->lost_rank, -1);
}

TEST(BehindRankTest, TheVerdictFollowsItUnlessAnotherWorkerFailed) {
  AttemptRecord record;
  for (int rank = 0; rank < 3; ++rank) {
    WorkerRecord& worker = record.workers.emplace_back();
    worker.global_rank = rank;
    worker.exit = ProcessExit{.signaled = true, .value = rank == 1 ? SIGTERM : SIGABRT};
    worker.sent_signal = rank == 1 ? SIGTERM : 0;
    worker.calls = {rank == 1 ? Done(3) : Waits(4)};
    if (rank == 1) continue;
    worker.stderr_tail =
        "[rank0]:[E1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n";
  }
  record.ended = {0, 2, 1};
  Judge(record);
  EXPECT_EQ(record.cause, 1u);
  for (WorkerRecord& worker : record.workers) worker.ending.reset();
  record.workers[2].stderr_tail = "ValueError: no data\n";
  Judge(record);
  EXPECT_EQ(record.cause, 2u);
}

// The programs leave no dumps.
TEST(BehindRankTest, TheTextsOfWatchdogsAreCompared) {
  AttemptRecord record;
  for (int rank = 0; rank < 3; ++rank) {
    WorkerRecord worker;
    worker.global_rank = rank;
    worker.exit = ProcessExit{.signaled = true, .value = SIGABRT};
    worker.stderr_tail =
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  "
        "Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=" +
        std::string(rank == 2 ? "_ALLGATHER_BASE" : "ALLREDUCE") +
        ", NumelIn=1) ran for 600023 milliseconds before timing out.\n";
    record.workers.push_back(worker);
    record.ended.push_back(static_cast<size_t>(rank));
  }
  Judge(record, true);
  EXPECT_EQ(record.cause, 2U);
}

TEST(BehindRankTest, OneNodeOfSeveralNamesNobody) {
  AttemptRecord record;
  for (int rank = 0; rank < 2; ++rank) {
    WorkerRecord& worker = record.workers.emplace_back();
    worker.global_rank = rank;
    worker.exit = ProcessExit{.signaled = false, .value = 1};
    worker.calls = {rank == 0 ? Waits(4) : Done(3)};
  }
  record.ended = {0, 1};
  Judge(record, false);
  EXPECT_EQ(record.workers[0].ending->lost_rank, -1);
  Judge(record);
  EXPECT_EQ(record.workers[0].ending->lost_rank, 1);
}

}  // namespace
}  // namespace rankrun::agent
