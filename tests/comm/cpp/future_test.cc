#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include <rankrun/future.h>

namespace rankrun {
namespace {

using std::chrono::milliseconds;

TEST(FutureTest, HasTheValueOfThePromise) {
  Promise<int> promise;
  Future<int> future = promise.future();
  EXPECT_FALSE(future.done());
  EXPECT_FALSE(future.WaitFor(milliseconds(1)));
  std::jthread other([promise] { promise.SetValue(7); });
  EXPECT_EQ(future.Wait(), 7);
  EXPECT_TRUE(future.WaitFor(milliseconds(0)));
  EXPECT_TRUE(future.done());
  EXPECT_EQ(future.exception(), nullptr);
}

TEST(FutureTest, OnlyTheFirstEndCounts) {
  Promise<int> promise;
  EXPECT_TRUE(promise.SetValue(1));
  EXPECT_FALSE(promise.SetValue(2));
  EXPECT_FALSE(promise.SetException(std::make_exception_ptr(std::runtime_error("late"))));
  EXPECT_EQ(promise.future().Wait(), 1);
}

TEST(FutureTest, AnExceptionIsThrownByEachWait) {
  Promise<void> promise;
  Future<void> future = promise.future();
  promise.SetException(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_THROW(future.Wait(), std::runtime_error);
  EXPECT_THROW(future.WaitFor(milliseconds(0)), std::runtime_error);
  EXPECT_NE(future.exception(), nullptr);
}

TEST(FutureTest, APromiseThatIsGoneIsBroken) {
  auto future = Promise<int>().future();
  EXPECT_THROW(future.Wait(), std::future_error);
}

TEST(FutureTest, ThenMakesAChain) {
  Promise<int> promise;
  int calls = 0;
  auto text = promise.future()
                  .Then([&](const Future<int>& first) {
                    calls += 1;
                    return first.Wait() + 1;
                  })
                  .Then([](const Future<int>& second) { return std::to_string(second.Wait()); });
  EXPECT_EQ(calls, 0);
  promise.SetValue(1);
  EXPECT_EQ(text.Wait(), "2");
  auto after = promise.future().Then([&](const Future<int>&) { calls += 1; });
  EXPECT_TRUE(after.done());
  EXPECT_EQ(calls, 2);
}

TEST(FutureTest, AnExceptionPassesThroughAChain) {
  Promise<int> promise;
  auto second = promise.future().Then([](const Future<int>& first) { return first.Wait(); });
  promise.SetException(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_THROW(second.Wait(), std::runtime_error);
  auto third = second.Then([](const Future<int>& failed) { return failed.exception() != nullptr; });
  EXPECT_TRUE(third.Wait());
}

}  // namespace
}  // namespace rankrun
