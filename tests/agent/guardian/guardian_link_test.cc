#include "agent/guardian/guardian_link.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

struct GuardianLinkTest : testing::Test {
  GuardianLinkTest() {
    auto pair = GuardianLink::CreatePair();
    EXPECT_TRUE(pair);
    guardian.emplace(std::move(pair->first));
    agent.emplace(std::move(pair->second));
  }
  void ExpectClosed(GuardianLink& link) {
    auto message = link.Receive();
    ASSERT_TRUE(message);
    EXPECT_TRUE(std::holds_alternative<LinkClosed>(*message));
  }

  std::optional<GuardianLink> guardian;
  std::optional<GuardianLink> agent;
};

TEST_F(GuardianLinkTest, NothingSentIsNothingReceived) {
  EXPECT_FALSE(guardian->Receive());
  EXPECT_FALSE(agent->Receive());
}

TEST_F(GuardianLinkTest, ASignalNoticeArrives) {
  guardian->Send(SignalNotice{SIGTERM, 4711});
  auto message = agent->Receive();
  ASSERT_TRUE(message);
  auto* notice = std::get_if<SignalNotice>(&*message);
  ASSERT_NE(notice, nullptr);
  EXPECT_EQ(notice->signal_number, SIGTERM);
  EXPECT_EQ(notice->sender, 4711);
  EXPECT_FALSE(agent->Receive());
}

TEST_F(GuardianLinkTest, AGoodbyeArrives) {
  agent->Send(Goodbye{.exit_code = 3, .end_signal = SIGINT});
  auto message = guardian->Receive();
  ASSERT_TRUE(message);
  auto* goodbye = std::get_if<Goodbye>(&*message);
  ASSERT_NE(goodbye, nullptr);
  EXPECT_EQ(goodbye->exit_code, 3);
  EXPECT_EQ(goodbye->end_signal, SIGINT);
}

TEST_F(GuardianLinkTest, TheListOfEndSignalsArrives) {
  uint64_t bits = (uint64_t{1} << 63) | (uint64_t{1} << 31) | (uint64_t{1} << SIGTERM);
  agent->Send(EndSignals{bits});
  auto message = guardian->Receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<EndSignals>(*message).bits, bits);
}

TEST_F(GuardianLinkTest, AHeartbeatArrives) {
  agent->Send(Heartbeat{std::chrono::milliseconds(6'667)});
  auto message = guardian->Receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<Heartbeat>(*message).lease, std::chrono::milliseconds(6'667));
}

TEST_F(GuardianLinkTest, RequestsForADebuggerAndItsReportArrive) {
  agent->Send(StartDebugger{4711});
  agent->Send(EndDebugger{});
  guardian->Send(DebuggerReport{DebuggerReport::Outcome::kNoProgram, ENOENT});
  EXPECT_EQ(std::get<StartDebugger>(*guardian->Receive()).process, 4711);
  EXPECT_TRUE(std::holds_alternative<EndDebugger>(*guardian->Receive()));
  auto report = std::get<DebuggerReport>(*agent->Receive());
  EXPECT_EQ(report.outcome, DebuggerReport::Outcome::kNoProgram);
  EXPECT_EQ(report.error_number, ENOENT);
}

// Ctrl-Z may stop the guardian for hours.
TEST_F(GuardianLinkTest, AGoodbyeArrivesAfterAnyNumberOfUnreadHeartbeats) {
  for (int i = 0; i < 10'000; ++i) agent->Send(Heartbeat{std::chrono::milliseconds(100)});
  agent->Send(Goodbye{.exit_code = 3, .end_signal = 0});
  auto first = guardian->Receive();
  ASSERT_TRUE(first);
  EXPECT_TRUE(std::holds_alternative<Heartbeat>(*first));
  auto second = guardian->Receive();
  ASSERT_TRUE(second);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*second));
  agent->Send(Heartbeat{std::chrono::milliseconds(100)});
  EXPECT_TRUE(guardian->Receive()) << "reading makes room";
}

TEST_F(GuardianLinkTest, MessagesKeepTheirOrder) {
  for (int i = 1; i <= 50; ++i) guardian->Send(SignalNotice{i, i});
  for (int i = 1; i <= 50; ++i) {
    auto message = agent->Receive();
    ASSERT_TRUE(message);
    EXPECT_EQ(std::get<SignalNotice>(*message).signal_number, i);
  }
}

TEST_F(GuardianLinkTest, TheOtherEndsDeathIsSeenAgainAndAgain) {
  guardian.reset();
  ExpectClosed(*agent);
  ExpectClosed(*agent);
}

TEST_F(GuardianLinkTest, LastMessagesArriveBeforeTheDeath) {
  agent->Send(Goodbye{.exit_code = 0, .end_signal = 0});
  agent.reset();
  auto message = guardian->Receive();
  ASSERT_TRUE(message);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*message));
  ExpectClosed(*guardian);
}

// A process that dies with unread messages resets the connection. Its own last
// messages must still arrive.
TEST_F(GuardianLinkTest, LastMessagesArriveBeforeTheDeathOfAnEndThatDidNotRead) {
  guardian->Send(SignalNotice{SIGINT, 0});
  agent->Send(Goodbye{.exit_code = 5, .end_signal = 0});
  agent.reset();
  auto message = guardian->Receive();
  ASSERT_TRUE(message);
  ASSERT_TRUE(std::holds_alternative<Goodbye>(*message));
  EXPECT_EQ(std::get<Goodbye>(*message).exit_code, 5);
  ExpectClosed(*guardian);
}

TEST_F(GuardianLinkTest, SendingToTheDeadIsHarmless) {
  agent.reset();
  guardian->Send(SignalNotice{SIGTERM, 1});  // no SIGPIPE
  ExpectClosed(*guardian);
}

TEST_F(GuardianLinkTest, SendNeverBlocks) {
  for (int i = 0; i < 10'000; ++i) guardian->Send(SignalNotice{SIGUSR1, i});
  auto message = agent->Receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<SignalNotice>(*message).sender, 0);
}

TEST_F(GuardianLinkTest, AKilledProcessClosesItsEnd) {
  pid_t child = test::Fork([&] {
    guardian.reset();
    pause();
    return 0;
  });
  agent.reset();
  EXPECT_FALSE(guardian->Receive());
  kill(child, SIGKILL);
  test::WaitForExit(child);
  ExpectClosed(*guardian);
}

TEST_F(GuardianLinkTest, WorkersDoNotInheritIt) {
  EXPECT_EQ(fcntl(guardian->fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(agent->fd(), F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace rankrun::agent
