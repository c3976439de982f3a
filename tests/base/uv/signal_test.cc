#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_signal.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

std::unique_ptr<Signal> Catch(Loop& loop, int number, std::function<void()> caught) {
  auto signal = Signal::Catch(loop, number, std::move(caught));
  EXPECT_TRUE(signal);
  return signal ? std::move(*signal) : nullptr;
}

TEST(SignalTest, CallsOnTheLoopForASignalToTheProcess) {
  Loop loop;
  int caught = 0;
  auto signal = Catch(loop, SIGUSR1, [&] { caught += loop.IsOnLoop() ? 1 : 0; });
  kill(getpid(), SIGUSR1);
  EXPECT_EQ(caught, 0);
  EXPECT_TRUE(loop.RunUntil([&] { return caught == 1; }, test::kLong));
  kill(getpid(), SIGUSR1);
  EXPECT_TRUE(loop.RunUntil([&] { return caught == 2; }, test::kLong));
}

TEST(SignalTest, SignalsAreDistinguished) {
  Loop loop;
  int first = 0;
  int second = 0;
  auto one = Catch(loop, SIGUSR1, [&] { first += 1; });
  auto two = Catch(loop, SIGUSR2, [&] { second += 1; });
  kill(getpid(), SIGUSR2);
  EXPECT_TRUE(loop.RunUntil([&] { return second == 1; }, test::kLong));
  EXPECT_EQ(first, 0);
}

TEST(SignalTest, ItsEndRestoresTheDefault) {
  Loop loop;
  Catch(loop, SIGUSR1, [] {}).reset();
  test::RunReadyCallbacks(loop);
  struct sigaction action;
  sigaction(SIGUSR1, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

TEST(SignalTest, SigkillCannotBeCaught) {
  Loop loop;
  auto signal = Signal::Catch(loop, SIGKILL, [] {});
  ASSERT_FALSE(signal);
  EXPECT_EQ(signal.error().message, "catch a signal: Invalid argument");
}

}  // namespace
}  // namespace rankrun
