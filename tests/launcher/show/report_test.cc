#include "launcher/show/report.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace rankrun::launcher {
namespace {

using agent::AttemptRecord;
using agent::WorkerRecord;
using std::chrono::milliseconds;

struct ReportTest : testing::Test {
  ReportTest() {
    record.lasted = milliseconds(2500);
    for (int rank = 0; rank < 4; ++rank) {
      WorkerRecord worker;
      worker.global_rank = worker.local_rank = rank;
      worker.pid = 100 + rank;
      worker.exit = ProcessExit{.signaled = true, .value = SIGTERM};
      worker.sent_signal = SIGTERM;
      record.workers.push_back(worker);
    }
    record.cause = 2;
    Cause().sent_signal = 0;
  }

  WorkerRecord& Cause() { return record.workers[2]; }
  void CauseExits(int code) { Cause().exit = ProcessExit{.signaled = false, .value = code}; }

  // Leaves only the cause, so that a report has only its part.
  void OnlyTheCause() {
    record.workers = {Cause()};
    record.cause = 0;
  }
  std::string Line(const std::string& beginning) const {
    std::string text = FormatReport(record);
    size_t at = text.find("\n  " + beginning);
    if (at == std::string::npos) return "no such line in\n" + text;
    return text.substr(at + 3, text.find('\n', at + 1) - at - 3);
  }

  AttemptRecord record;
};

TEST_F(ReportTest, AKilledRankComesFirstAndItsConsequencesInOneLine) {
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): killed by SIGKILL, not sent by rankrun\n"
            "  then: ranks 0, 1, 3: killed by SIGTERM, sent by rankrun\n"
            "  next: the end, --max-restarts is 0; exit code 137\n");
}

TEST_F(ReportTest, ALongWaitForTheStartOfTheWorkersIsShown) {
  record.waited = milliseconds(999);
  EXPECT_TRUE(FormatReport(record).starts_with("rankrun: attempt 0 failed after 2.5 s\n"));
  record.waited = milliseconds(13'000);
  EXPECT_THAT(FormatReport(record),
              testing::StartsWith("rankrun: attempt 0 failed after 2.5 s, and 13.0 s of waiting "
                                  "before it\n"));
}

TEST_F(ReportTest, RefusedRequestsToTheStoreAreShown) {
  record.store_refusals = {"rank 2: SET of key \"model\": the store is full"};
  EXPECT_EQ(Line("store: "), "store: refused rank 2: SET of key \"model\": the store is full");
}

TEST_F(ReportTest, APossibleOomKillIsPartOfTheCause) {
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  Cause().kill_note = "the kernel's OOM killer was at work in this cgroup (limit 64 GiB)";
  EXPECT_THAT(FormatReport(record),
              testing::HasSubstr("killed by SIGKILL, not sent by rankrun; the kernel's OOM killer "
                                 "was at work in this cgroup (limit 64 GiB)\n"));
}

TEST_F(ReportTest, RanksInTheSameOperationShareALine) {
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  for (WorkerRecord& worker : record.workers) {
    worker.activity = {.what = "in AllReduce #12 (16 x float32, sum) of world",
                       .lasted = milliseconds(1000 + 100 * worker.global_rank)};
  }
  record.workers[1].activity = {.what = "waiting for key x of the store",
                                .lasted = milliseconds(3000)};
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): killed by SIGKILL, not sent by rankrun; was in AllReduce "
            "#12 (16 x float32, sum) of world for 1.2 s\n"
            "  then: ranks 0, 3: killed by SIGTERM, sent by rankrun; were in AllReduce #12 (16 x "
            "float32, sum) of world for 1.3 s\n"
            "  then: rank 1 (pid 101): killed by SIGTERM, sent by rankrun; was waiting for key x "
            "of the store for 3.0 s\n"
            "  next: the end, --max-restarts is 0; exit code 137\n");
}

agent::LastOperation Operation(const std::string& name, const std::string& group) {
  return {.what = name + " (16 x float32, sum)",
          .group = group,
          .is_under_way = false,
          .has_failed = false,
          .ago = milliseconds(1200)};
}

TEST_F(ReportTest, TheLastOperationsOfTheCauseAndOfOneWaitingRankAreShown) {
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  Cause().last_operations = {Operation("Broadcast #11", "pair"), Operation("Send", "world"),
                             Operation("AllReduce #11", "world")};
  Cause().last_operations[1].has_failed = true;
  Cause().operations_file = "/logs/2/operations.json";
  for (WorkerRecord& worker : record.workers) {
    if (&worker == &Cause()) continue;
    worker.activity = {.what = "in AllReduce #12 of world", .lasted = milliseconds(1000)};
    worker.last_operations = {Operation("AllReduce #12", "world")};
    worker.last_operations[0].is_under_way = true;
  }
  EXPECT_EQ(
      FormatReport(record),
      "rankrun: attempt 0 failed after 2.5 s\n"
      "  cause: rank 2 (pid 102): killed by SIGKILL, not sent by rankrun\n"
      "    last operations: Broadcast #11 of pair, Send (failed), AllReduce #11 of world; none "
      "in the last 1.2 s\n"
      "    all operations: /logs/2/operations.json\n"
      "  then: ranks 0, 1, 3: killed by SIGTERM, sent by rankrun; were in AllReduce #12 of "
      "world for 1.0 s\n"
      "    last operations of rank 0: AllReduce #12 (under way) of world\n"
      "  next: the end, --max-restarts is 0; exit code 137\n");
}

TEST_F(ReportTest, StacksOfWorkersThatWereKilledAreShown) {
  CauseExits(3);
  for (int rank : {0, 1}) {
    WorkerRecord& worker = record.workers[static_cast<size_t>(rank)];
    worker.exit = ProcessExit{.signaled = true, .value = SIGKILL};
    worker.sent_signal = SIGKILL;
  }
  record.workers[1].stacks = {.frames = {"read(/data/of/the/second/epoch/batches)",
                                         "load_batch (data.py:31)", "main (train.py:88)"},
                              .file = "/logs/1/stacks.txt"};
  record.workers[3].stacks = {.note = "it does not stop"};
  EXPECT_EQ(
      FormatReport(record),
      "rankrun: attempt 0 failed after 2.5 s\n"
      "  cause: rank 2 (pid 102): exit code 3\n"
      "  then: ranks 0, 1: killed by SIGKILL, sent by rankrun\n"
      "    stack of rank 1: read(/data/of/the/second/epoch/batches) <- load_batch (data.py:31)\n"
      "      <- main (train.py:88)\n"
      "    all stacks: /logs/1/stacks.txt\n"
      "  then: rank 3 (pid 103): killed by SIGTERM, sent by rankrun\n"
      "    stack: (it does not stop)\n"
      "  next: the end, --max-restarts is 0; exit code 3\n");
}

TEST_F(ReportTest, AnExitCodeComesWithExceptionAndLastLines) {
  CauseExits(3);
  Cause().exception = "ValueError: no such batch";
  Cause().stderr_tail = "loading\nTraceback (most recent call last):\nValueError: no such batch\n";
  Cause().stderr_file = "/tmp/e/attempt_1_local_rank_2.stderr";
  record.attempt = 1;
  record.max_restarts = 3;
  record.restarts = true;
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 1 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 3\n"
            "    exception: ValueError: no such batch\n"
            "    last lines of its standard error:\n"
            "    | loading\n"
            "    | Traceback (most recent call last):\n"
            "    | ValueError: no such batch\n"
            "    more: /tmp/e/attempt_1_local_rank_2.stderr\n"
            "  then: ranks 0, 1, 3: killed by SIGTERM, sent by rankrun\n"
            "  next: restart 2 of 3\n");
}

TEST_F(ReportTest, NoiseAfterAnExceptionIsOnlyCounted) {
  CauseExits(1);
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: no such batch\n";
  const std::string warning =
      "/lib/resource_tracker.py:237: UserWarning: '/psm_1': No such file or directory\n"
      "  warnings.warn('resource_tracker: %r: %s' % (name, e))\n";
  Cause().stderr_tail = error;
  for (int i = 0; i < 20; ++i) Cause().stderr_tail += warning;
  OnlyTheCause();
  EXPECT_THAT(FormatReport(record),
              testing::HasSubstr("    | ValueError: no such batch\n"
                                 "    not shown: 40 lines after the exception\n"
                                 "  next: "));
}

TEST_F(ReportTest, AFailedStartIsShownWithItsReason) {
  Cause().pid = 0;
  Cause().exit.reset();
  Cause().start_error = Error{ErrorCode::kNotFound, "start ./x: No such file or directory"};
  OnlyTheCause();
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2: could not be started: start ./x: No such file or directory\n"
            "  next: the end, --max-restarts is 0; exit code 127\n");
}

TEST_F(ReportTest, AUsedUpBudgetIsReported) {
  CauseExits(7);
  record.attempt = record.max_restarts = 3;
  EXPECT_EQ(Line("next:"), "next: the end, 3 of 3 restarts used; exit code 7");
}

TEST_F(ReportTest, AStopAfterTheFailureIsReported) {
  CauseExits(7);
  record.max_restarts = 3;
  record.stop_signal = SIGTERM;
  EXPECT_EQ(Line("next:"), "next: the end, rankrun was asked to stop by SIGTERM");
  record.attempt = 3;
  EXPECT_EQ(Line("next:"), "next: the end, rankrun was asked to stop by SIGTERM");
}

TEST_F(ReportTest, AForwardedSignalIsReported) {
  CauseExits(0);
  Cause().passed_signal = SIGUSR1;
  Cause().exit = ProcessExit{.signaled = true, .value = SIGUSR1};
  EXPECT_EQ(Line("cause:"), "cause: rank 2 (pid 102): killed by SIGUSR1, passed on by rankrun");
}

TEST_F(ReportTest, AnExpiredTimerIsReported) {
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  Cause().timer = agent::ExpiredTimer{.scope = "step", .signal_number = SIGKILL, .at = {}};
  Cause().ended = TimePoint{} + milliseconds(100);
  EXPECT_EQ(
      Line("cause:"),
      "cause: rank 2 (pid 102): killed by SIGKILL, its timer \"step\" had expired 0.100 s before");
  Cause().exit = ProcessExit{.signaled = true, .value = SIGSEGV};
  EXPECT_EQ(Line("cause:"), "cause: rank 2 (pid 102): killed by SIGSEGV, not sent by rankrun");
}

TEST_F(ReportTest, ARestartHasATimeAndAReason) {
  record.restarts = true;
  record.max_restarts = 3;
  record.next_reason = "in 2.0 s: 3 failures in a row";
  EXPECT_EQ(Line("next:"), "next: restart 1 of 3, in 2.0 s: 3 failures in a row");
}

TEST_F(ReportTest, TheNodesOfAllCausesAreNamed) {
  EXPECT_EQ(FormatReport(record).find("nodes of the causes"), std::string::npos);
  record.cause_nodes = "n2 (attempts 0-1), n3 (attempt 2)";
  EXPECT_EQ(Line("nodes of"), "nodes of the causes: n2 (attempts 0-1), n3 (attempt 2)");
}

TEST_F(ReportTest, AnEndOfTheJobsOwnHasItsReasonAndCode) {
  record.next_reason = "the job's time (--timeout) is over";
  record.exit_code = 124;
  EXPECT_EQ(Line("next:"), "next: the end, the job's time (--timeout) is over; exit code 124");
}

TEST_F(ReportTest, TheEndOfAWorkerIsDistinguishedFromOurSignal) {
  CauseExits(0);
  Cause().sent_signal = SIGTERM;
  EXPECT_EQ(Line("cause:"), "cause: rank 2 (pid 102): exit code 0, after rankrun had sent SIGTERM");
  Cause().exit = ProcessExit{.signaled = true, .value = SIGSEGV};
  EXPECT_EQ(Line("cause:"),
            "cause: rank 2 (pid 102): killed by SIGSEGV, after rankrun had sent SIGTERM");
  Cause().exit = ProcessExit{.signaled = true, .value = SIGKILL};
  Cause().sent_signal = SIGKILL;
  EXPECT_EQ(Line("cause:"), "cause: rank 2 (pid 102): killed by SIGKILL, sent by rankrun");
}

TEST_F(ReportTest, WorkersThatEndedDifferentlyHaveLinesOfTheirOwn) {
  CauseExits(1);
  record.workers[1].exit = ProcessExit{.signaled = false, .value = 0};
  record.workers[1].sent_signal = 0;
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "  then: ranks 0, 3: killed by SIGTERM, sent by rankrun\n"
            "  then: rank 1 (pid 101): exit code 0\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
}

TEST_F(ReportTest, PrimaryFailuresAreShownBeforeTheOthers) {
  CauseExits(1);
  record.workers[1].exit = ProcessExit{.signaled = false, .value = 4};
  record.workers[1].sent_signal = 0;
  record.workers[1].stderr_tail = "no such batch\n";
  record.workers[1].stderr_file = "/tmp/e/attempt_0/1/stderr.log";
  record.workers[3].exception = "ValueError: no";
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "  then: rank 1 (pid 101): exit code 4\n"
            "    last lines of its standard error:\n"
            "    | no such batch\n"
            "    more: /tmp/e/attempt_0/1/stderr.log\n"
            "  then: rank 3 (pid 103): killed by SIGTERM, sent by rankrun\n"
            "    exception: ValueError: no\n"
            "  then: rank 0 (pid 100): killed by SIGTERM, sent by rankrun\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
}

TEST_F(ReportTest, RanksThatLostTheirPeerAreALineWithoutTheirOutput) {
  CauseExits(1);
  for (size_t rank : {0u, 3u}) {
    record.workers[rank].stderr_tail = "RuntimeError: Connection closed by peer\n";
    record.workers[rank].stderr_file = "/e/attempt_0/" + std::to_string(rank) + "/stderr.log";
  }
  record.workers[1].exit = ProcessExit{.signaled = false, .value = 1};
  record.workers[1].sent_signal = 0;
  record.workers[1].exception = "DistNetworkError: lost rank 2";
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "  then: ranks 0, 3: lost their peer, then were stopped by rankrun (SIGTERM)\n"
            "  then: rank 1 (pid 101): because of rank 2: exit code 1\n"
            "    more: /e/attempt_0\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
}

TEST_F(ReportTest, ACauseWithoutWordsHasThoseOfAnother) {
  record.workers[record.cause].exit = ProcessExit{.signaled = true, .value = SIGTERM};
  record.workers[record.cause].sent_signal = SIGTERM;
  record.workers[1].exit = ProcessExit{.signaled = false, .value = 1};
  record.workers[1].sent_signal = 0;
  record.workers[1].stderr_tail =
      "RuntimeError: [Rank 1]: Rank 2 failed to pass monitoredBarrier in 3000 ms\nbye\n";
  EXPECT_THAT(FormatReport(record),
              testing::HasSubstr("  cause: rank 2 (pid 102): killed by SIGTERM, sent by rankrun\n"
                                 "    rank 1 says: RuntimeError: [Rank 1]: Rank 2 failed to pass "
                                 "monitoredBarrier in 3000 ms\n"));
}

TEST_F(ReportTest, ASuccessThatIsTheCauseHasTheErrorOfAnother) {
  CauseExits(0);
  record.workers[1].exit = ProcessExit{.signaled = false, .value = 1};
  record.workers[1].sent_signal = 0;
  record.workers[1].stderr_tail = "RuntimeError: [pair.cc:553] Connection closed by peer\n";
  EXPECT_THAT(FormatReport(record),
              testing::HasSubstr(
                  "  cause: rank 2 (pid 102): exit code 0, while others still needed it\n"
                  "    rank 1 says: RuntimeError: [pair.cc:553] Connection closed by peer\n"));
}

TEST_F(ReportTest, ASanitizersErrorIsShownAlthoughALegendFollows) {
  CauseExits(1);
  std::string& tail = record.workers[record.cause].stderr_tail;
  tail = "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6\n";
  for (int line = 0; line < 40; ++line) tail += "  Legend:  fa\n";
  EXPECT_THAT(FormatReport(record),
              testing::HasSubstr("    error: ==7==ERROR: AddressSanitizer: heap-buffer-overflow on "
                                 "address 0x6\n    last lines of its standard error:\n"));
}

TEST_F(ReportTest, FilesThatLieSideBySideAreNamedByTheirFolder) {
  CauseExits(1);
  for (size_t rank : {0u, 3u}) {
    record.workers[rank].stderr_tail = "RuntimeError: Connection closed by peer\n";
    record.workers[rank].stderr_file = "/e/attempt_0/" + std::to_string(rank) + ".stderr.log";
  }
  EXPECT_THAT(FormatReport(record), testing::HasSubstr("    more: /e/attempt_0\n"));
}

TEST_F(ReportTest, OfAStoppedRankOnlyTheFileIsNamed) {
  CauseExits(1);
  record.workers[1].stderr_tail = "told to end\n";
  record.workers[1].stderr_file = "/e/attempt_0/1/stderr.log";
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "  then: ranks 0, 1, 3: killed by SIGTERM, sent by rankrun\n"
            "    more: /e/attempt_0/1/stderr.log\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
}

TEST_F(ReportTest, AnErrorInALineOfJsonIsShownAsText) {
  CauseExits(1);
  Cause().stdout_tail =
      R"({"level": "error", "event": "step 7 failed", "exception": "a.py:3\nKeyError: 'mask'"})";
  OnlyTheCause();
  EXPECT_THAT(FormatReport(record), testing::HasSubstr("    | ERROR step 7 failed\n"
                                                       "    | a.py:3\n"
                                                       "    | KeyError: 'mask'\n"));
}

TEST_F(ReportTest, WithoutStandardErrorTheLastOutputIsShown) {
  CauseExits(1);
  Cause().stdout_tail = "step 1\nno such batch\n";
  Cause().stdout_file = "/e/attempt_0/2/stdout.log";
  OnlyTheCause();
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "    last lines of its standard output:\n"
            "    | step 1\n"
            "    | no such batch\n"
            "    more: /e/attempt_0/2/stdout.log\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
  record.workers[0].stderr_tail = "why\n";
  EXPECT_THAT(FormatReport(record), testing::Not(testing::HasSubstr("output")));
}

TEST_F(ReportTest, AnExitCodeAbove128IsExplainedAsAShellsSignal) {
  CauseExits(137);
  EXPECT_EQ(Line("cause:"),
            "cause: rank 2 (pid 102): exit code 137 (as a shell says: killed by SIGKILL)");
  for (auto [code, said] : {std::pair(128, false), {129, true}, {192, true}, {193, false}}) {
    CauseExits(code);
    EXPECT_EQ(Line("cause:").find("as a shell says") != std::string::npos, said) << code;
  }
}

TEST_F(ReportTest, AThousandAlikeAreOneLine) {
  CauseExits(1);
  while (record.workers.size() < 1000) {
    WorkerRecord worker = record.workers[0];
    worker.global_rank = static_cast<int>(record.workers.size());
    record.workers.push_back(worker);
  }
  EXPECT_EQ(Line("then:"), "then: ranks 0, 1, 3-999: killed by SIGTERM, sent by rankrun");
}

TEST_F(ReportTest, EveryLineOfAnExceptionIsShown) {
  CauseExits(1);
  OnlyTheCause();
  record.workers[0].exception = "RuntimeError: first\nsecond";
  EXPECT_EQ(FormatReport(record),
            "rankrun: attempt 0 failed after 2.5 s\n"
            "  cause: rank 2 (pid 102): exit code 1\n"
            "    exception: RuntimeError: first\n"
            "    exception: second\n"
            "  next: the end, --max-restarts is 0; exit code 1\n");
}

TEST_F(ReportTest, ControlCharactersCannotReachTheTerminal) {
  CauseExits(1);
  Cause().stderr_tail = "\x1b[2Jcleared\a\ttab\x7f\n";
  Cause().exception = "E: \x1b]0;title\a";
  std::string text = FormatReport(record);
  EXPECT_NE(text.find("    | \\x1b[2Jcleared\\x07\ttab\\x7f\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    exception: E: \\x1b]0;title\\x07\n"), std::string::npos) << text;
  for (char c : text) EXPECT_TRUE(c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f));
}

TEST_F(ReportTest, LettersOfOtherAlphabetsAreKept) {
  CauseExits(1);
  Cause().stderr_tail = "Überlauf: größer als 5 µs – 日本\n";
  EXPECT_NE(FormatReport(record).find("| Überlauf: größer als 5 µs – 日本\n"), std::string::npos);
}

TEST_F(ReportTest, ALongLineIsCut) {
  CauseExits(1);
  Cause().stderr_tail = std::string(300, 'a') + "\n" + std::string(301, 'b') + "\n";
  std::string text = FormatReport(record);
  EXPECT_NE(text.find("| " + std::string(300, 'a') + "\n"), std::string::npos);
  EXPECT_NE(text.find("| " + std::string(297, 'b') + "...\n"), std::string::npos);
}

TEST_F(ReportTest, OnlyTheLastTwentyLinesAreShown) {
  CauseExits(1);
  for (int i = 0; i < 100; ++i) Cause().stderr_tail += "line " + std::to_string(i) + "\n";
  std::string text = FormatReport(record);
  EXPECT_EQ(text.find("| line 79\n"), std::string::npos);
  EXPECT_NE(text.find("| line 80\n"), std::string::npos);
  EXPECT_NE(text.find("| line 99\n"), std::string::npos);
}

TEST_F(ReportTest, ALineOfUtf8IsNotCutInsideALetter) {
  CauseExits(1);
  Cause().stderr_tail = std::string(296, 'a') + "ü" + "rest\n";
  std::string text = FormatReport(record);
  EXPECT_NE(text.find("| " + std::string(296, 'a') + "ü...\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace rankrun::launcher
