#include "agent/health/stack_suspect.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

StackFrame Frame(const std::string& function, const std::string& file, int line) {
  StackFrame frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  return frame;
}

const StackFrame kMain = Frame("main", "/job/train.py", 7);
const StackFrame kLogger = Frame("wrapper", "/venv/torch/distributed/c10d_logger.py", 8);

StackFrame Distributed(const std::string& function) {
  return Frame(function, "/venv/torch/distributed/distributed_c10d.py", 9);
}

struct RankStacks {
  int global_rank = 0;
  ProcessStacks stacks = {};
};

RankStacks Python(int rank, std::vector<StackFrame> frames) {
  ThreadStack main{.tid = 7, .python = std::move(frames)};
  return {rank, {.pid = 7, .interpreter = "python3", .threads = {main}}};
}

RankStacks In(int rank, const std::string& function) {
  return Python(rank, {Distributed(function), kLogger, kMain});
}

RankStacks Loads(int rank) {
  return Python(rank, {Frame("wait", "/lib/multiprocessing/connection.py", 0), kMain});
}

RankStacks Native(int rank, const std::string& function) {
  ThreadStack main{.tid = 7, .native = {Frame(function, "", 0), Frame("main", "", 0)}};
  return {rank, {.pid = 7, .threads = {main}}};
}

std::vector<RankDigest> Digests(const std::vector<RankStacks>& workers) {
  std::vector<RankDigest> digests;
  for (const RankStacks& worker : workers) {
    digests.push_back({worker.global_rank, DigestOf(worker.stacks)});
  }
  return digests;
}

int SuspectOf(const std::vector<RankStacks>& workers) {
  auto found = SuspectByStacks(Digests(workers));
  return found ? found->global_rank : -1;
}

TEST(CollectiveOfTest, IsTheInnermostFunctionOfTorchDistributed) {
  EXPECT_EQ(CollectiveOf(In(0, "all_reduce").stacks), "all_reduce");
  EXPECT_EQ(CollectiveOf(Python(0, {kLogger, kMain}).stacks), "");
  EXPECT_EQ(CollectiveOf(Loads(0).stacks), "");
  EXPECT_EQ(CollectiveOf(Native(0, "c10d::Reducer::finalize_backward()").stacks),
            "c10d::Reducer::finalize_backward");
  EXPECT_EQ(CollectiveOf({}), "");
}

TEST(SuspectByStacksTest, IsTheOnlyRankInNoCollective) {
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), Loads(1), In(2, "all_reduce")}), 1);
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), Loads(1)}), 1);
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), Loads(1), In(2, "barrier")}), 1);
  EXPECT_EQ(SuspectOf({Native(0, "gloo::f()"), Native(1, "load")}), 1);
  EXPECT_EQ(SuspectByStacks(Digests({In(0, "all_reduce"), Loads(1)}))->what,
            "in wait (connection.py) <- main (train.py:7), while all others are in all_reduce");
  EXPECT_EQ(SuspectOf({Loads(0), Loads(1), In(2, "all_reduce")}), -1);
  EXPECT_EQ(SuspectOf({Loads(0), Loads(1)}), -1);
}

TEST(SuspectByStacksTest, IsTheOnlyRankInAnotherCollective) {
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), In(1, "barrier"), In(2, "all_reduce")}), 1);
  EXPECT_EQ(SuspectByStacks(Digests({In(4, "a"), In(5, "b"), In(6, "b")}))->what,
            "in a, while all others are in b");
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), In(1, "barrier")}), -1);
  EXPECT_EQ(SuspectOf({In(0, "a"), In(1, "b"), In(2, "c")}), -1);
  EXPECT_EQ(SuspectOf({In(0, "a"), In(1, "a"), In(2, "b"), In(3, "b")}), -1);
  EXPECT_EQ(SuspectOf({In(0, "a"), In(1, "a"), In(2, "a")}), -1);
}

TEST(SuspectByStacksTest, ARankInACollectiveMayWaitForThoseThatExchangeMessages) {
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), In(1, "recv"), In(2, "recv")}), -1);
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), In(1, "recv"), In(2, "all_reduce")}), 1);
}

TEST(SuspectByStacksTest, IsNobodyIfAStackIsUnknown) {
  RankStacks unknown = Python(2, {});
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), Loads(1), unknown}), -1);
  unknown = In(2, "all_reduce");
  unknown.stacks.python_note = "not in time";
  EXPECT_EQ(SuspectOf({In(0, "all_reduce"), Loads(1), unknown}), -1);
  EXPECT_EQ(SuspectOf({}), -1);
  EXPECT_EQ(SuspectOf({Loads(0)}), -1);
}

TEST(WithSuspectTest, AVerdictWithoutACauseGetsTheSuspect) {
  const auto workers = Digests({In(0, "barrier"), Loads(1)});
  const HangVerdict verdict = WithSuspect({.text = "no progress", .needs_stacks = true}, workers);
  EXPECT_EQ(verdict.causes.at(1),
            "in wait (connection.py) <- main (train.py:7), while all others are in barrier; no "
            "progress");
  EXPECT_EQ(verdict.text,
            "no progress; rank 1 is in wait (connection.py) <- main (train.py:7), while all others "
            "are in barrier");
  EXPECT_EQ(WithSuspect({.causes = {{0, "sleeps"}}, .text = "t"}, workers).causes.count(1), 0U);
  const HangVerdict unclear{.text = "t", .needs_stacks = true};
  EXPECT_TRUE(WithSuspect(unclear, Digests({Loads(0), Loads(1)})).causes.empty());
}

RankStacks Exits(int rank) {
  return Python(rank, {Frame("_shutdown", "/usr/lib/python3.11/threading.py", 1583)});
}

TEST(WithSuspectTest, RanksThatAreExitingAreBlamedInsteadOfThoseThatHaveEnded) {
  const HangVerdict ended{
      .causes = {{0, "ended"}, {2, "ended"}}, .text = "no progress", .needs_stacks = true};
  HangVerdict verdict = WithSuspect(ended, Digests({Exits(1)}));
  EXPECT_EQ(verdict.causes,
            (std::map<int, std::string>{
                {1, "exiting, in _shutdown (threading.py:1583); all others have ended"}}));
  EXPECT_EQ(verdict.text, "rank 1 is exiting, and does not end; all others have ended");
  verdict = WithSuspect(ended, Digests({Exits(1), Native(3, "__run_exit_handlers")}));
  EXPECT_EQ(verdict.text, "ranks 1, 3 are exiting, and do not end; all others have ended");
  for (const auto& living : {Digests({Exits(1), Loads(3)}), Digests({Exits(1), In(3, "barrier")}),
                             Digests({Native(1, "gloo::f()")}), Digests({})}) {
    EXPECT_EQ(WithSuspect(ended, living).causes, ended.causes);
  }
}

TEST(WithSuspectTest, ARankThatWaitsForOthersAtItsExitIsNoCause) {
  RankStacks at_exit = Native(1, "c10d::ProcessGroupGloo::~ProcessGroupGloo()");
  at_exit.stacks.threads[0].native.push_back(Frame("__run_exit_handlers", "", 0));
  const HangVerdict ended{.causes = {{0, "ended"}}, .text = "t", .needs_stacks = true};
  EXPECT_EQ(WithSuspect(ended, Digests({at_exit})).causes, ended.causes);
}

TEST(WithSuspectTest, NobodyIsBlamedInAnOperationOfLibrankrunThatAllHaveEntered) {
  const auto workers = Digests({In(0, "barrier"), Loads(1)});
  EXPECT_TRUE(WithSuspect({.text = "all have entered"}, workers).causes.empty());
}

TEST(DigestsOfTest, AWorkerWithoutStacksIsUnknownAndOneThatHasEndedIsLeftOut) {
  const std::vector<WorkerSample> workers = {{.global_rank = 4, .pid = 10},
                                             {.global_rank = 5, .pid = 11},
                                             {.global_rank = 6, .has_ended = true}};
  const ProcessStacks stacks = In(4, "barrier").stacks;
  EXPECT_EQ(DigestsOf(workers, {{10, stacks}}),
            (std::vector<RankDigest>{{4, DigestOf(stacks)}, {5, {}}}));
}

}  // namespace
}  // namespace rankrun::agent
