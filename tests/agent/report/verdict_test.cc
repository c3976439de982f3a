#include "agent/report/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rankrun::agent {
namespace {

constexpr const char* kTraceback =
    "Traceback (most recent call last):\n  File \"a.py\"\nRuntimeError: no data\n";
constexpr const char* kLostPeer =
    "Traceback (most recent call last):\n  File \"a.py\"\nRuntimeError: [pair.cc:553] Connection "
    "closed by peer [127.0.0.1]:30605.\n";

WorkerRecord Ended(ProcessExit exit, int sent_signal = 0, std::string stderr_tail = "") {
  WorkerRecord record;
  record.exit = exit;
  record.sent_signal = sent_signal;
  record.stderr_tail = std::move(stderr_tail);
  return record;
}

const WorkerRecord kSucceeded = Ended({.signaled = false, .value = 0});
const WorkerRecord kFailed = Ended({.signaled = false, .value = 1});
const WorkerRecord kTerminated = Ended({.signaled = true, .value = 15}, 15);

TEST(ChooseCauseTest, TheFirstFailureIsTheCause) {
  EXPECT_EQ(ChooseCause({kFailed, kSucceeded, kFailed}, {1, 2, 0}), 2U);
}

TEST(ChooseCauseTest, ASignalledWorkerIsAConsequence) {
  EXPECT_EQ(ChooseCause({kTerminated, kFailed}, {0, 1}), 1U);
}

TEST(ChooseCauseTest, AWorkerThatLostAPeerIsAConsequenceEvenIfItEndedEarlier) {
  WorkerRecord lost = Ended({.signaled = false, .value = 1}, 0, kLostPeer);
  EXPECT_EQ(ChooseCause({lost, kFailed, lost}, {0, 2, 1}), 1U);
}

TEST(ChooseCauseTest, AWorkerWithItsOwnExceptionIsTheCauseEvenIfOurSignalEndedIt) {
  WorkerRecord lost = Ended({.signaled = false, .value = 1}, 0, kLostPeer);
  WorkerRecord raised = Ended({.signaled = true, .value = 15}, 15, kTraceback);
  EXPECT_EQ(ChooseCause({lost, raised, kTerminated}, {0, 2, 1}), 1U);
}

TEST(ChooseCauseTest, TheFirstLostPeerIsTheCauseIfThereIsNoPrimaryFailure) {
  WorkerRecord lost = Ended({.signaled = false, .value = 1}, 0, kLostPeer);
  EXPECT_EQ(ChooseCause({kTerminated, lost, lost, kTerminated}, {2, 1, 0, 3}), 2U);
}

TEST(ChooseCauseTest, AWorkerThatHungIsTheCauseHoweverTheOthersEnded) {
  WorkerRecord hung = kTerminated;
  hung.hang = "sleeping (clock_nanosleep)";
  EXPECT_EQ(EndingOf(hung).kind, EndKind::kHung);
  EXPECT_EQ(ExitCodeOf(hung), 203);
  EXPECT_EQ(HowItEnded(hung), "hung: sleeping (clock_nanosleep)");
  WorkerRecord not_started;
  not_started.start_error = Error{ErrorCode::kNotFound, "start x"};
  WorkerRecord lost = Ended({.signaled = false, .value = 1}, 0, kLostPeer);
  WorkerRecord raised = Ended({.signaled = true, .value = 15}, 15, kTraceback);
  for (const WorkerRecord& other : {kFailed, kTerminated, lost, raised, not_started}) {
    EXPECT_EQ(ChooseCause({other, hung}, {0, 1}), 1U);
    EXPECT_EQ(ChooseCause({hung, other}, {1, 0}), 0U);
  }
}

TEST(ChooseCauseTest, OfSeveralThatHungTheLowestRankIsTheCause) {
  WorkerRecord hung = kTerminated;
  hung.hang = "dead-lock";
  EXPECT_EQ(ChooseCause({kTerminated, hung, hung}, {0, 2, 1}), 1U);
}

TEST(ChooseCauseTest, AWorkerThatEndedWhileOthersWaitedForItMayBeTheCause) {
  WorkerRecord hung = kSucceeded;
  hung.hang = "no longer running (exit code 0)";
  EXPECT_EQ(ChooseCause({kTerminated, hung}, {1, 0}), 1U);
}

TEST(ChooseCauseTest, AFailedStartIsTheCause) {
  WorkerRecord not_started;
  not_started.start_error = Error{ErrorCode::kNotFound, "start x"};
  EXPECT_EQ(ChooseCause({kTerminated, not_started}, {1, 0}), 1U);
}

TEST(MayBeVictimTest, AnErrorThatTheEndOfAnotherCauses) {
  WorkerRecord worker = Ended({.signaled = false, .value = 1});
  EXPECT_FALSE(MayBeVictim(EndKindOf(worker)));
  for (const char* text : {"ConnectionResetError: [Errno 104] Connection reset by peer",
                           "socket.timeout: timed out", "EOFError: Ran out of input"}) {
    worker.stderr_tail =
        "Traceback (most recent call last):\n  File \"x\", line 1\n" + std::string(text) + "\n";
    EXPECT_TRUE(MayBeVictim(EndKindOf(worker))) << text;
  }
  worker.stderr_tail = "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 1\n";
  EXPECT_FALSE(MayBeVictim(EndKindOf(worker)));
}

TEST(FailedByItselfTest, AConsequenceIsNoPrimaryFailure) {
  EXPECT_TRUE(FailedByItself(EndKindOf(kFailed)));
  EXPECT_TRUE(FailedByItself(EndKindOf(Ended({.signaled = true, .value = 15}, 15, kTraceback))));
  WorkerRecord raised = kTerminated;
  raised.exception = "ValueError: no";
  EXPECT_TRUE(FailedByItself(EndKindOf(raised)));
  EXPECT_FALSE(FailedByItself(EndKindOf(kTerminated)));
  EXPECT_FALSE(FailedByItself(EndKindOf(kSucceeded)));
  EXPECT_FALSE(FailedByItself(EndKindOf(Ended({.signaled = false, .value = 1}, 0, kLostPeer))));
}

// Builders of the ends in the table below.
const std::string kRefused = "WARNING attempt 0: Connection refused, trying again\n";

WorkerRecord Exits(int code) { return Ended({.signaled = false, .value = code}); }
WorkerRecord ExitsAfterSignal(int code) { return Ended({.signaled = false, .value = code}, 15); }
WorkerRecord Raises() { return Ended({.signaled = false, .value = 1}, 0, kTraceback); }
WorkerRecord RaisesAfterSignal() { return Ended({.signaled = false, .value = 1}, 15, kTraceback); }
WorkerRecord KilledInException() { return Ended({.signaled = true, .value = 15}, 15, kTraceback); }
WorkerRecord Aborts(int sent = 0) { return Ended({.signaled = true, .value = 6}, sent); }
WorkerRecord Warned(int code) { return Ended({.signaled = false, .value = code}, 0, kRefused); }
WorkerRecord Lost(int sent = 0) { return Ended({.signaled = false, .value = 1}, sent, kLostPeer); }
WorkerRecord SizesDiffer() {
  return Ended({.signaled = true, .value = 6}, 0,
               "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  "
               "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 13336 vs 68.\n");
}
WorkerRecord Logged(WorkerRecord worker) {
  worker.stderr_tail.insert(0, "ERROR shard 7 is empty; skipping it\n");
  return worker;
}
WorkerRecord Lost(int sent, int rank) {
  std::string text = kTraceback;
  return Ended({.signaled = false, .value = 1}, sent,
               text.substr(0, text.find("Runtime")) + "DistNetworkError: rank 0: lost rank " +
                   std::to_string(rank) + "\n");
}
// "rank 2" is the odd one of four that called together.
WorkerRecord Mismatched() {
  return Ended({.signaled = false, .value = 1}, 0,
               "DistError: ranks 0, 1, 3 called Barrier #1; rank 2 called AllReduce #1\n");
}
// PyTorch's comparison of two calls.
WorkerRecord Compared(int own, int other) {
  return Ended({.signaled = false, .value = 1}, 0,
               "RuntimeError: Rank " + std::to_string(own) +
                   " is running collective: A, but Rank " + std::to_string(other) +
                   " is running collective: B\n");
}
WorkerRecord SaysReset() {
  return Ended({.signaled = false, .value = 1}, 0, "recv: Connection reset by peer\n");
}
WorkerRecord SaysGosReset() {
  return Ended({.signaled = false, .value = 1}, 0,
               "2026/11/26 12:00:00 sum: read tcp [::1]:1->[::1]:2: read: connection reset by "
               "peer\n");
}
WorkerRecord SaysRustsReset() {
  return Ended(
      {.signaled = false, .value = 1}, 0,
      "Error: Os { code: 104, kind: ConnectionReset, message: \"Connection reset by peer\" "
      "}\n");
}
WorkerRecord Panics(int sent) {
  return Ended({.signaled = true, .value = sent}, sent,
               "thread 'main' panicked at src/a.rs:8:4:\nindex out of bounds\n");
}
WorkerRecord TimedOut(int sent = 0) {
  std::string text = kTraceback;
  return Ended({.signaled = false, .value = 1}, sent,
               text.substr(0, text.find("Runtime")) + "TimeoutError: timed out\n");
}
WorkerRecord InputEnded(int sent = 0) {
  std::string text = kTraceback;
  return Ended({.signaled = false, .value = 1}, sent,
               text.substr(0, text.find("Runtime")) + "EOFError: Ran out of input\n");
}
WorkerRecord RequestTimedOut() {
  std::string text = kTraceback;
  return Ended({.signaled = false, .value = 1}, 0,
               text.substr(0, text.find("Runtime")) +
                   "requests.exceptions.ReadTimeout: HTTPConnectionPool(): Read timed out.\n");
}
WorkerRecord Exited1AfterSignal() { return Ended({.signaled = false, .value = 1}, 15); }
WorkerRecord SucceedsAfterSignal() { return Ended({.signaled = false, .value = 0}, 15); }
WorkerRecord BrokenPipe() { return Ended({.signaled = true, .value = 13}); }

struct Case {
  const char* text;
  std::vector<WorkerRecord> workers;
  std::vector<size_t> ended;
  size_t cause;
};

// The table of docs/supervision.md, row by row.
const Case kCases[] = {
    {"its own failure before a lost peer that was seen first",
     {Lost(), Exits(3), Lost()},
     {0, 2, 1},
     1},
    {"of two own failures the first", {Exits(3), Exits(4)}, {1, 0}, 1},
    {"of two own failures the one that others name",
     {Exits(3), Exits(4), Lost(0, 0)},
     {1, 0, 2},
     0},
    {"a signal from outside", {kTerminated, Aborts(), Lost()}, {2, 0, 1}, 1},
    {"a signal from outside although the log mentions a connection",
     {kTerminated, Ended({.signaled = true, .value = 9}, 0, kRefused)},
     {0, 1},
     1},
    {"one that ignored our signal and exits with its own code",
     {kTerminated, ExitsAfterSignal(3), Lost()},
     {2, 0, 1},
     1},
    {"before a victim that caught an exception earlier",
     {KilledInException(), ExitsAfterSignal(3), Lost()},
     {2, 0, 1},
     1},
    {"one that others name, even if our signal ended it",
     {kTerminated, Lost(0, 2), kTerminated},
     {1, 0, 2},
     2},
    {"of two that others name, the one that most name",
     {Lost(0, 3), TimedOut(), Lost(15, 1), kTerminated, Lost(0, 3)},
     {1, 0, 4, 2, 3},
     3},
    {"not one that others name and that lost a peer itself",
     {Lost(0, 1), Lost(0, 2), KilledInException()},
     {0, 1, 2},
     2},
    {"the code 128+n is the end by our signal",
     {ExitsAfterSignal(143), Lost(), kTerminated},
     {1, 0, 2},
     1},
    {"the only one that lost nobody", {Lost(), kTerminated, Lost()}, {0, 2, 1}, 1},
    {"but not if a single other one lost something", {Lost(), kTerminated}, {0, 1}, 0},
    {"an exception that our signal cut short",
     {kTerminated, KilledInException(), Lost()},
     {2, 0, 1},
     1},
    {"an exception after our signal", {kTerminated, RaisesAfterSignal(), Lost()}, {2, 0, 1}, 1},
    {"but not if the handlers of all raise",
     {RaisesAfterSignal(), Lost(), RaisesAfterSignal()},
     {1, 0, 2},
     1},
    {"handlers that abort", {Aborts(15), Exits(7), Aborts(15)}, {1, 0, 2}, 1},
    {"handlers that lose their peer", {Lost(15), Exits(7), Lost(15)}, {1, 0, 2}, 1},
    {"an exit code although the log mentions a connection",
     {RaisesAfterSignal(), Warned(3), RaisesAfterSignal()},
     {1, 0, 2},
     1},
    {"SIGPIPE is a lost peer", {BrokenPipe(), Raises()}, {0, 1}, 1},
    {"the only one whose call differs",
     {Mismatched(), Mismatched(), Mismatched(), Mismatched()},
     {0, 1, 3, 2},
     2},
    {"the only one whose call differs, although our signal ended it",
     {Mismatched(), kTerminated, kTerminated, kTerminated},
     {0, 1, 2, 3},
     2},
    {"the one that most others name, although it names one itself",
     {Compared(0, 1), Compared(1, 0), Compared(2, 1)},
     {0, 1, 2},
     1},
    {"a panic of Rust that our signal cut short", {Panics(15), Lost(), kTerminated}, {1, 0, 2}, 0},
    {"programs in Rust and Go that lost their peer",
     {SaysGosReset(), SaysRustsReset(), kTerminated},
     {0, 1, 2},
     2},
    {"a program in C that lost its peer",
     {SaysReset(), KilledInException(), kTerminated},
     {0, 1, 2},
     1},
    {"the only one that logged an error before it lost its peer, as all did",
     {Lost(), Logged(Lost()), Lost()},
     {0, 2, 1},
     1},
    {"the same, although another one was aborted because calls differ",
     {SizesDiffer(), Logged(Lost()), Lost()},
     {0, 2, 1},
     1},
    {"but not if two logged one: the first",
     {Lost(), Logged(Lost()), Logged(Lost())},
     {0, 2, 1},
     0},
    {"the only one that logged an error before all raised the same one",
     {Raises(), Raises(), Logged(Raises())},
     {0, 1, 2},
     2},
    {"but not before one that failed by itself", {Lost(), Exits(3), Logged(Lost())}, {1, 0, 2}, 1},
    {"the only one that left early", {Lost(), kSucceeded, Lost()}, {0, 1, 2}, 1},
    {"the only one that left early, if one other noticed",
     {Lost(), kSucceeded, kTerminated},
     {1, 0, 2},
     1},
    {"but not after our signal", {Lost(), SucceedsAfterSignal(), kTerminated}, {0, 1, 2}, 0},
    {"but not one of several", {Lost(), kSucceeded, kSucceeded}, {1, 2, 0}, 0},
    {"the only one for which all others waited in vain",
     {TimedOut(), kTerminated, TimedOut(15)},
     {0, 2, 1},
     1},
    {"the same, although its log mentions a connection",
     {TimedOut(), Ended({.signaled = true, .value = 15}, 15, kRefused), TimedOut(15)},
     {0, 2, 1},
     1},
    {"one that waited in vain, before those that lost it",
     {Lost(), TimedOut(), Lost()},
     {0, 1, 2},
     1},
    {"one that waited in vain, and whose end made handlers raise",
     {RaisesAfterSignal(), TimedOut(), RaisesAfterSignal()},
     {1, 0, 2},
     1},
    {"a request to another service that took too long",
     {Exited1AfterSignal(), Exited1AfterSignal(), RequestTimedOut()},
     {2, 0, 1},
     2},
    {"the same, while its peers lost it",
     {Lost(), Lost(), kTerminated, RequestTimedOut()},
     {3, 0, 1, 2},
     3},
    {"the only one that lost nobody, while the input of others ended",
     {InputEnded(), InputEnded(15), Lost(), RaisesAfterSignal()},
     {0, 2, 1, 3},
     3},
    {"one whose input ended, before those that lost it",
     {Lost(), InputEnded(), Lost()},
     {0, 1, 2},
     1},
    {"one whose input ended, perhaps a file, before one that said nothing",
     {Lost(), InputEnded(), kTerminated},
     {0, 1, 2},
     1},
    {"one whose input ended, before handlers that exit",
     {Exited1AfterSignal(), InputEnded(), Exited1AfterSignal()},
     {1, 0, 2},
     1},
    {"one whose input ended, before a wait in vain", {TimedOut(), InputEnded()}, {0, 1}, 1},
    {"an own failure before an input that ended", {InputEnded(), Exits(3), Lost()}, {0, 2, 1}, 1},
    {"an own failure before a wait in vain", {TimedOut(), Exits(3), Lost()}, {0, 1, 2}, 1},
    {"a wait in vain for something else, although another left early",
     {TimedOut(), kSucceeded, Lost()},
     {1, 0, 2},
     0},
    {"not one that left early if another failed", {Exits(3), kSucceeded, Lost()}, {1, 0, 2}, 0},
    {"the first lost peer if there is nothing else",
     {kTerminated, Lost(), Lost(), kTerminated},
     {2, 1, 0, 3},
     2},
};

TEST(ChooseCauseTest, TheOnlyOneWithAnotherErrorIsTheCause) {
  const auto raises = [](const std::string& text, int sent_signal) {
    const bool is_cut = sent_signal != 0;
    return Ended({.signaled = is_cut, .value = is_cut ? sent_signal : 1}, sent_signal,
                 "Traceback (most recent call last):\n  File \"a.py\"\n" + text);
  };
  const WorkerRecord shard = raises("ValueError: no shard 7\n", 15);
  const WorkerRecord victim = raises("MeshError: peer 3 is gone\n", 0);
  const WorkerRecord late_victim = raises("MeshError: peer 4 is gone\n", 15);
  const auto cause = [](std::vector<WorkerRecord> workers) {
    std::vector<size_t> ended;
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i].global_rank = static_cast<int>(i);
      workers[i].ending = EndingOf(workers[i]);
      workers[i].stderr_tail.clear();
      ended.push_back(i);
    }
    return ChooseCause(workers, ended);
  };
  EXPECT_EQ(cause({victim, late_victim, shard}), 2U);
  EXPECT_EQ(cause({victim, kTerminated, shard}), 0U) << "one is not several";
  EXPECT_EQ(cause({victim, late_victim, shard, shard}), 0U) << "two pairs";
  EXPECT_EQ(cause({kFailed, late_victim, late_victim, shard}), 0U) << "a silent failure";
  EXPECT_EQ(cause({victim, late_victim, raises("Stopped: got SIGTERM\n", 15)}), 0U)
      << "the exception of a handler";
}

TEST(ChooseCauseTest, Table) {
  for (Case c : kCases) {
    for (size_t i = 0; i < c.workers.size(); ++i) c.workers[i].global_rank = static_cast<int>(i);
    EXPECT_EQ(ChooseCause(c.workers, c.ended), c.cause) << c.text;
    // The judgement of another node needs no texts.
    for (WorkerRecord& worker : c.workers) {
      worker.ending = EndingOf(worker);
      worker.stderr_tail.clear();
    }
    EXPECT_EQ(ChooseCause(c.workers, c.ended), c.cause) << c.text << ", from endings";
  }
}

TEST(EndingOfTest, ASignalFromOutsideIsStrongerThanATimeOutBeforeIt) {
  WorkerRecord worker = TimedOut();
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kTimedOut);
  worker.exit = ProcessExit{.signaled = true, .value = 6};
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kTimedOut);
  worker.exit = ProcessExit{.signaled = true, .value = 9};
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kFailed);
}

TEST(CauseInWordsTest, SaysWhyASuccessIsACause) {
  EXPECT_EQ(CauseInWords(kFailed), "exit code 1");
  EXPECT_EQ(CauseInWords(kSucceeded), "exit code 0, while others still needed it");
  EXPECT_EQ(ExitCodeOf(kSucceeded), 1);
}

TEST(EndingOfTest, WithoutStandardErrorStandardOutputCounts) {
  WorkerRecord worker = kTerminated;
  worker.stdout_tail = kTraceback;
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kKilledInException);
  worker.stdout_tail = kLostPeer;
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kLostPeer);
  worker.stderr_tail = "a warning\n";
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kStopped);
  worker = kFailed;
  worker.stdout_tail = "recv: Connection reset by peer\n";
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kLostPeer);
  worker.stdout_tail = "rank 1 ended with loss 0.31\n";
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kFailed) << "a result";
}

TEST(EndingOfTest, ACaughtExceptionDoesNotHideTheLastError) {
  std::string tail = kTraceback;
  for (int line = 0; line < 25; ++line) tail += "step\n";
  WorkerRecord worker =
      Ended({.signaled = false, .value = 1}, 0, tail + "DistError: lost rank 3\n");
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kLostPeer);
  EXPECT_EQ(EndingOf(worker).lost_rank, 3);
  worker.stderr_tail = tail;
  EXPECT_EQ(EndingOf(worker).kind, EndKind::kFailed);
}

// Unless several candidates are equal.
TEST(ChooseCauseTest, TheOrderOfTheEndsDoesNotMatter) {
  for (Case c : kCases) {
    if (std::string(c.text).find("the first") != std::string::npos) continue;
    for (size_t i = 0; i < c.workers.size(); ++i) c.workers[i].global_rank = static_cast<int>(i);
    std::ranges::sort(c.ended);
    do {
      EXPECT_EQ(ChooseCause(c.workers, c.ended), c.cause) << c.text;
    } while (std::ranges::next_permutation(c.ended).found);
  }
}

}  // namespace
}  // namespace rankrun::agent
