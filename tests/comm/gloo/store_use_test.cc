// How the Gloo plug-in uses the store during operations.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <vector>

#include "store/clients/tcp_store.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/ranks.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using transport::BackendGroup;
using transport::TestCall;

TEST(GlooStoreUseTest, ASlowCallReadsEachRanksCallOnceAndAtGrowingIntervals) {
  BackendGroup group("gloo", 3);
  std::latch timed_out(2);
  group.Run([&](Backend& backend, int rank) {
    if (rank == 2) return timed_out.wait();
    TestCall call({.kind = Operation::Kind::kBarrier, .number = 1}, milliseconds(2000));
    EXPECT_FALSE(Barrier(backend, call.call));
    timed_out.count_down();
  });
  std::lock_guard lock(group.keys->mutex);
  EXPECT_LE(group.keys->gets["gloo/in/0"], 1) << "by rank 1";
  EXPECT_LE(group.keys->gets["gloo/in/1"], 1) << "by rank 0";
  EXPECT_LE(group.keys->checks["gloo/in/2"], 2 * 8) << "not every 50 ms";
}

// Returns the error of a receive that is only tested, never waited for.
std::string ErrorOfTests(Backend& backend, store::Store& store) {
  std::vector<int> never(10);
  auto transfer =
      backend.StartRecv(transport::BlockOf(never), 1, {.tag = 0, .dtype = DType::kInt32});
  (void)store.Set("under way", "");
  std::chrono::steady_clock::duration longest{};
  for (bool over = false; !over;) {
    auto before = std::chrono::steady_clock::now();
    over = (*transfer)->Test();
    longest = std::max(longest, std::chrono::steady_clock::now() - before);
  }
  // The backend waits 1 s for the store.
  if (longest > milliseconds(900)) return "a test took as long as the store";
  return (*transfer)->Wait(seconds(1)).error().message;
}

TEST(GlooStoreUseTimingTest, TestNeverWaitsForASilentStore) {
  ServerProcess server;
  auto run = [&](int rank) -> std::string {
    auto store = store::TcpStore::Connect("127.0.0.1", server.port());
    if (!store) return store.error().message;
    BackendGroup group("gloo", 2);
    auto backend = group.Create(group.Config(**store, rank));
    if (!backend) return backend.error().message;
    if (rank == 0) return ErrorOfTests(**backend, **store);
    (void)(*store)->Get("never", seconds(60));
    return "";
  };
  ChildProcess survivor([&] { return run(0); });
  ChildProcess victim([&] { return run(1); });
  auto store = store::TcpStore::Connect("127.0.0.1", server.port());
  EXPECT_TRUE(store && (*store)->Get("under way", seconds(60)));
  server.Stop();
  victim.Kill();
  EXPECT_THAT(survivor.Text(), testing::HasSubstr("lost rank 1"));
}

}  // namespace
}  // namespace rankrun::comm::gloo
