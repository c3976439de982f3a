#include "agent/report/cause.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(ChooseCause({kTerminated, lost, lost}, {2, 1, 0}), 2U);
}

TEST(ChooseCauseTest, AFailedStartIsTheCause) {
  WorkerRecord not_started;
  not_started.start_error = Error{ErrorCode::kNotFound, "start x"};
  EXPECT_EQ(ChooseCause({kTerminated, not_started}, {1, 0}), 1U);
}

TEST(FailedByItselfTest, AConsequenceIsNoPrimaryFailure) {
  EXPECT_TRUE(FailedByItself(kFailed));
  EXPECT_TRUE(FailedByItself(Ended({.signaled = true, .value = 15}, 15, kTraceback)));
  WorkerRecord raised = kTerminated;
  raised.exception = "ValueError: no";
  EXPECT_TRUE(FailedByItself(raised));
  EXPECT_FALSE(FailedByItself(kTerminated));
  EXPECT_FALSE(FailedByItself(kSucceeded));
  EXPECT_FALSE(FailedByItself(Ended({.signaled = false, .value = 1}, 0, kLostPeer)));
}

TEST(LostAPeerTest, StandardErrorOrTheExceptionBlamesAPeer) {
  EXPECT_TRUE(LostAPeer(Ended({.signaled = false, .value = 1}, 0, kLostPeer)));
  WorkerRecord raised = kTerminated;
  raised.exception = "DistNetworkError: lost rank 2";
  EXPECT_TRUE(LostAPeer(raised));
  EXPECT_FALSE(LostAPeer(kTerminated));
  EXPECT_FALSE(LostAPeer(Ended({.signaled = false, .value = 0}, 0, kLostPeer)));
}

TEST(BlamesLostPeerTest, LooksAtTheLastLinesOnly) {
  std::string long_ago = kLostPeer;
  for (int line = 0; line < 30; ++line) long_ago += "reconnected, going on\n";
  EXPECT_FALSE(BlamesLostPeer(long_ago));
  EXPECT_TRUE(BlamesLostPeer(kLostPeer));
}

}  // namespace
}  // namespace rankrun::agent
