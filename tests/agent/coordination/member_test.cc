#include "agent/coordination/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct MemberTest : testing::Test {
  MemberTest() { now += seconds(100); }

  std::vector<MemberAction> Apply(const MemberEvent& event) {
    return actions = member.Step(event, now);
  }
  std::vector<MemberAction> Deliver(CoordinatorMessage message) {
    return Apply(MessageFromCoordinator{std::move(message)});
  }
  void Connect() {
    Apply(LinkUp{});
    Deliver(Waiting{""});
  }
  void Run(int round = 1) {
    Connect();
    Deliver(Prepare{.round = round});
    Apply(Ready{round, 0});
    Deliver(StartRound{.round = round});
    ASSERT_EQ(member.phase(), MemberPhase::kRunning);
  }
  // Lets `time` pass while the coordinator answers all beats.
  void PassAnswered(Duration time) {
    for (TimePoint end = now + time; now < end; now += milliseconds(500)) {
      for (const MemberAction& action : Apply(MemberTick{})) {
        if (const auto* send = std::get_if<Send>(&action)) {
          if (const auto* beat = std::get_if<Beat>(&send->message)) Deliver(*beat);
        }
      }
    }
  }
  template <typename T>
  const T* Sent() {
    for (const MemberAction& action : actions) {
      const auto* send = std::get_if<Send>(&action);
      if (send == nullptr) continue;
      if (const auto* message = std::get_if<T>(&send->message)) return message;
    }
    return nullptr;
  }
  template <typename T>
  const T* Got() {
    for (const MemberAction& action : actions) {
      if (const auto* found = std::get_if<T>(&action)) return found;
    }
    return nullptr;
  }

  TimePoint now{};
  Member member{{}, Hello{.node = 1, .name = "n1"}, TimePoint{} + seconds(100)};
  std::vector<MemberAction> actions;
};

TEST_F(MemberTest, WorkersStartAtStartRoundAndNotBefore) {
  Connect();
  Deliver(StartRound{.round = 1});
  EXPECT_FALSE(Got<StartWorkers>());
  Deliver(Prepare{.round = 1});
  EXPECT_TRUE(Got<MakeReady>());
  EXPECT_FALSE(Sent<Prepared>());
  Apply(Ready{1, 5});
  ASSERT_TRUE(Sent<Prepared>());
  EXPECT_EQ(Sent<Prepared>()->store_port, 5);
  Deliver(StartRound{.round = 2});
  EXPECT_FALSE(Got<StartWorkers>()) << "of another round";
  Deliver(StartRound{.round = 1});
  EXPECT_TRUE(Got<StartWorkers>());
}

TEST_F(MemberTest, AnOlderRoundIsNotPreparedAgain) {
  Connect();
  Deliver(Prepare{.round = 5});
  Deliver(Prepare{.round = 4});
  EXPECT_FALSE(Got<MakeReady>());
  Deliver(Prepare{.round = 6});
  EXPECT_TRUE(Got<MakeReady>());
  Apply(Ready{5, 0});
  EXPECT_FALSE(Sent<Prepared>()) << "for an earlier round";
}

TEST_F(MemberTest, StoppedIsSentOnceNothingIsLeft) {
  Run();
  Deliver(Stop{1, "node n2 leaves", false});
  ASSERT_TRUE(Got<StopWorkers>());
  EXPECT_FALSE(Got<StopWorkers>()->at_once);
  EXPECT_FALSE(Sent<Stopped>());
  Apply(WorkersOver{false});
  EXPECT_TRUE(Sent<Stopped>());
}

// The others may have needed them still.
TEST_F(MemberTest, WorkersThatHaveSucceededAreReportedAfterAFailureElsewhere) {
  Run();
  Apply(WorkersOver{true});
  Deliver(Stop{1, "rank 9 failed", true});
  EXPECT_TRUE(Got<ReportSuccess>());
  EXPECT_TRUE(Sent<Stopped>());
  Run(2);
  Apply(WorkersOver{true});
  Deliver(Stop{2, "node n2 leaves", false});
  EXPECT_FALSE(Got<ReportSuccess>());
}

TEST_F(MemberTest, AFailureIsSentAtOnceAndAgainInAHello) {
  Run();
  Apply(PartFailed{{.text = "rank 3 failed", .exit_code = 9}});
  ASSERT_TRUE(Sent<Failed>());
  EXPECT_EQ(Sent<Failed>()->cause.exit_code, 9);
  Apply(LinkDown{"reset"});
  Apply(WorkersOver{false});
  Hello hello = member.hello();
  EXPECT_EQ(hello.work, NodeState::kNone);
  ASSERT_TRUE(hello.failure);
  EXPECT_EQ(hello.failure->text, "rank 3 failed");
}

TEST_F(MemberTest, AShortDisconnectionChangesNothing) {
  Run();
  PassAnswered(seconds(20));
  Apply(LinkDown{"reset"});
  now += seconds(5);
  Apply(MemberTick{});
  EXPECT_TRUE(actions.empty());
  EXPECT_EQ(member.hello().work, NodeState::kRunning);
  Connect();
  PassAnswered(seconds(20));
  EXPECT_EQ(member.phase(), MemberPhase::kRunning);
}

TEST_F(MemberTest, ASilentCoordinatorEndsTheWorkersAtTwoThirdsOfTheTimeoutAndTheNodeAtItsEnd) {
  Run();
  TimePoint heard = now;
  now = heard + milliseconds(6'600);
  Apply(MemberTick{});
  EXPECT_FALSE(Got<StopWorkers>());
  now = heard + milliseconds(6'700);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<StopWorkers>());
  EXPECT_TRUE(Got<StopWorkers>()->at_once);
  Apply(WorkersOver{false});
  now = heard + milliseconds(9'900);
  Apply(MemberTick{});
  EXPECT_FALSE(Got<EndNode>());
  now = heard + seconds(10);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitLostCoordinator);
}

TEST_F(MemberTest, AnUnansweredBeatIsNoSignOfLife) {
  Run();
  TimePoint heard = now;
  for (; now < heard + seconds(10); now += milliseconds(500)) {
    Apply(MemberTick{});
    if (Got<StopWorkers>()) break;
  }
  EXPECT_EQ(member.phase(), MemberPhase::kStopping);
  EXPECT_LE(now, heard + seconds(7));
}

TEST_F(MemberTest, TheNextBeatNamesTheUnfinishedWorkers) {
  Run();
  Apply(WorkersLeft{{0, 2}});
  Apply(WorkersLeft{{2}});
  EXPECT_FALSE(Sent<Beat>());
  now += seconds(1);
  Apply(MemberTick{});
  ASSERT_TRUE(Sent<Beat>());
  EXPECT_THAT(Sent<Beat>()->unfinished, testing::Optional(std::vector{2}));
  now += seconds(1);
  Apply(MemberTick{});
  EXPECT_EQ(Sent<Beat>()->unfinished, std::nullopt) << "nothing has changed";
  Apply(LinkDown{"reset"});
  Apply(LinkUp{});
  now += seconds(1);
  Apply(MemberTick{});
  EXPECT_THAT(Sent<Beat>()->unfinished, testing::Optional(std::vector{2}))
      << "the earlier beat may be lost";
}

TEST_F(MemberTest, UnfinishedWorkersAreForgottenInTheNextRound) {
  Run();
  Apply(WorkersLeft{{2}});
  Deliver(Stop{1, "rank 9 failed", true});
  Apply(WorkersOver{false});
  Deliver(Prepare{.round = 2});
  Apply(Ready{2, 0});
  now += seconds(1);
  Apply(MemberTick{});
  EXPECT_EQ(Sent<Beat>()->unfinished, std::nullopt);
  Deliver(StartRound{.round = 2});
  now += seconds(1);
  Apply(MemberTick{});
  EXPECT_EQ(Sent<Beat>()->unfinished, std::nullopt);
}

TEST_F(MemberTest, ALongGraceEndsWithTheLease) {
  Run();
  Deliver(Stop{1, "node n2 leaves", false});
  now += milliseconds(6'700);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<StopWorkers>());
  EXPECT_TRUE(Got<StopWorkers>()->at_once);
}

TEST_F(MemberTest, TheGuardiansLeaseEndsAfterTheMembersOwn) {
  Run();
  Duration first = member.lease();
  EXPECT_GT(first, milliseconds(6'667));
  EXPECT_LT(first, milliseconds(7'700));
  now += seconds(3);
  Apply(LinkDown{"reset"});
  EXPECT_EQ(member.lease(), first - seconds(3)) << "no answer has arrived since";
}

TEST_F(MemberTest, AMemberThatSawFinishSucceeds) {
  Run();
  Apply(WorkersOver{true});
  EXPECT_TRUE(Sent<Done>());
  Deliver(Finish{1});
  EXPECT_TRUE(Sent<FinishSeen>());
  Deliver(Prepare{.round = 2});
  EXPECT_FALSE(Got<MakeReady>()) << "a finished job runs again";
  now += seconds(10);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, 0);
}

TEST_F(MemberTest, AVerdictEndsTheNodeOnceItsWorkersHaveEnded) {
  Run();
  Deliver(Verdict{9, "rank 3 failed"});
  EXPECT_TRUE(Got<StopWorkers>());
  EXPECT_FALSE(Got<EndNode>());
  Apply(WorkersOver{false});
  EXPECT_TRUE(Sent<Stopped>());
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, 9);
}

TEST_F(MemberTest, NoVerdictIsASuccessWhileWorkersRun) {
  Run();
  Deliver(Verdict{0, "all is well"});
  EXPECT_TRUE(Got<StopWorkers>());
  Apply(WorkersOver{false});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitInternalError);
  EXPECT_EQ(Got<EndNode>()->text, "the coordinator ended the job while the workers here ran");
}

TEST_F(MemberTest, ALeaveIsSentAgainAfterAReconnect) {
  Run();
  Apply(LinkDown{"reset"});
  Apply(LeaveWanted{"SIGTERM"});
  Apply(LinkUp{});
  EXPECT_TRUE(Sent<Leave>());
  Apply(WorkersOver{false});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitDrained);
}

TEST_F(MemberTest, AStuckProcessIsSentAtOnceAndAgainInAHello) {
  Run();
  Deliver(Stop{1, "node n2 leaves", false});
  Apply(WorkersStuck{{.local_rank = 0, .what = "pid 71 (python3), state D"}});
  ASSERT_TRUE(Sent<Stuck>());
  EXPECT_EQ(Sent<Stuck>()->process.local_rank, 0);
  EXPECT_TRUE(member.hello().stuck);
  Deliver(Prepare{.round = 2});
  EXPECT_FALSE(Got<MakeReady>());
  Apply(WorkersOver{false});
  EXPECT_TRUE(Sent<Stopped>());
  EXPECT_FALSE(member.hello().stuck);
}

TEST_F(MemberTest, WithoutACoordinatorItGivesUpAfterTheJoinTimeout) {
  Apply(LinkDown{"connection refused"});
  now += milliseconds(599'999);
  Apply(MemberTick{});
  EXPECT_FALSE(Got<EndNode>());
  now += milliseconds(1);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitNoRendezvous);
  EXPECT_EQ(Got<EndNode>()->text, "found no coordinator within 600.0 s: connection refused");
}

TEST_F(MemberTest, ARefusedMemberEndsSoon) {
  Apply(LinkDown{"connection refused"});
  now += seconds(60);
  Apply(LinkDown{"wrong job secret", true});
  now += milliseconds(4'999);
  Apply(LinkDown{"wrong job secret", true});
  EXPECT_FALSE(Got<EndNode>());
  EXPECT_EQ(member.deadline(), now + milliseconds(1));
  now += milliseconds(1);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitNoRendezvous);
  EXPECT_EQ(Got<EndNode>()->text, "found no coordinator: wrong job secret");
}

TEST_F(MemberTest, AnotherFailureRestartsTheTimeOfRefusals) {
  Apply(LinkDown{"another job", true});
  now += seconds(4);
  Apply(LinkDown{"connection refused"});
  now += seconds(4);
  Apply(LinkDown{"another job", true});
  now += seconds(4);
  Apply(MemberTick{});
  EXPECT_FALSE(Got<EndNode>());
  Apply(LinkUp{});
  now += seconds(60);
  Apply(MemberTick{});
  EXPECT_FALSE(Got<EndNode>());
}

TEST_F(MemberTest, ARefusalDoesNotProlongTheJoinTimeout) {
  now += milliseconds(599'000);
  Apply(LinkDown{"another job", true});
  now += seconds(1);
  Apply(MemberTick{});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->text, "found no coordinator within 600.0 s: another job");
}

TEST_F(MemberTest, AMemberThatHasJoinedOutlivesAShortRefusal) {
  Run();
  Apply(LinkDown{"another job", true});
  now += seconds(6);
  Apply(MemberTick{});
  EXPECT_EQ(member.phase(), MemberPhase::kRunning);
}

TEST_F(MemberTest, ARefusalEndsTheNode) {
  Apply(LinkUp{});
  Deliver(Refusal{"wrong --nnodes"});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitNoRendezvous);
}

TEST_F(MemberTest, AMessageThatCannotBeReadEndsTheNode) {
  Apply(LinkUp{});
  Apply(UnreadableMessage{"byte 7: no such message"});
  ASSERT_TRUE(Got<EndNode>());
  EXPECT_EQ(Got<EndNode>()->exit_code, kExitNoRendezvous);
  EXPECT_EQ(
      Got<EndNode>()->text,
      "the coordinator sent a message that this version cannot read: byte 7: no such message");
}

}  // namespace
}  // namespace rankrun::agent
