#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "tests/agent/coordination/coordinator_fixture.h"

// Members that present the end of the job as a success, or impossible numbers.

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

const Cause kForged{.text = "all is well", .exit_code = 0};

TEST_F(CoordinatorTest, ACloseWhileNodesGatherIsNoSuccess) {
  Open(2, 2);
  Join(1);
  Deliver(1, Close{kForged});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, ACloseWhileARoundStopsIsNoSuccess) {
  policy_.restart.max_restarts = 3;
  Run(2);
  Deliver(2, Failed{1, {.text = "rank 3 failed", .exit_code = 9}});
  Deliver(2, Close{kForged});
  for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{1});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, ACloseDuringThePauseIsNoSuccess) {
  policy_.restart = {.max_restarts = 3, .first_pause = seconds(10)};
  Run(2);
  for (int round : {1, 2}) {  // the first failure has no pause
    if (round == 2) {
      for (PeerId peer : {1u, 2u}) Deliver(peer, Prepared{2, 5});
    }
    Deliver(2, Failed{round, {.text = "rank 3 failed", .exit_code = 9}});
    for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{round});
  }
  ASSERT_EQ(phase(), JobPhase::kPausing);
  Deliver(1, Close{kForged});
  ASSERT_TRUE(SentTo<Verdict>(2));
  EXPECT_EQ(SentTo<Verdict>(2)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, APrimaryFailureWithoutACodeIsNoSuccess) {
  Run(2);
  Deliver(1, Failed{1, {.text = "rank 0 lost its peer", .exit_code = 1, .is_primary = false}});
  Deliver(2, Failed{1, kForged});
  for (PeerId peer : {1u, 2u}) Deliver(peer, Stopped{1});
  ASSERT_TRUE(SentTo<Verdict>(1));
  EXPECT_EQ(SentTo<Verdict>(1)->exit_code, kExitInternalError);
}

TEST_F(CoordinatorTest, AHelloWithImpossibleNumbersIsRefused) {
  Open(1, 2);
  uint64_t node = 0;
  auto is_refused = [&](void (*change)(Hello&)) {
    Hello hello = HelloOf(++node);
    change(hello);
    Deliver(node, hello);
    return SentTo<Refusal>(node) != nullptr;
  };
  EXPECT_TRUE(is_refused([](Hello& hello) { hello.slots = (1 << 14) + 1; }));
  EXPECT_TRUE(is_refused([](Hello& hello) { hello.round = -1; }));
  EXPECT_TRUE(is_refused([](Hello& hello) { hello.attempts = -1; }));
  EXPECT_TRUE(is_refused([](Hello& hello) { hello.incarnation = -1; }));
  EXPECT_TRUE(is_refused([](Hello& hello) { hello.stop_ms = -1; }));
  EXPECT_FALSE(is_refused([](Hello& hello) { hello.slots = 1 << 14; }));
}

}  // namespace
}  // namespace rankrun::agent
