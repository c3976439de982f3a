#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/clients/file_store.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;
using Kind = Operation::Kind;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
struct What {
  Kind kind;
  int root = 0;
};
constexpr What kCalls[] = {
    {Kind::kAllReduce},         {Kind::kReduce},          {Kind::kBroadcast},
    {Kind::kAllGather},         {Kind::kGather},          {Kind::kScatter},
    {Kind::kAllToAll},          {Kind::kBarrier},         {Kind::kReduceScatter},
    {Kind::kReduce, kVictim},   {Kind::kGather, kVictim}, {Kind::kScatter, kVictim},
    {Kind::kBroadcast, kVictim}};
constexpr Reduction kSum{.dtype = DType::kFloat32, .op = ReduceOp::kSum};

// Memory shared by the test and its ranks.
struct Shared {
  std::atomic<int> calls[kRanks];
  std::atomic<int64_t> hit_at;  // time of the signal, in ticks of the clock
};

// A call with a third of `data` per rank.
Result<void> Once(ShmRank& me, const What& what, std::vector<float>& data,
                  std::vector<float>& other) {
  size_t count = data.size() / kRanks;
  size_t bytes = count * sizeof(float);
  auto* from = reinterpret_cast<std::byte*>(data.data());
  auto* to = reinterpret_cast<std::byte*>(other.data());
  std::vector<Block> outputs;
  std::vector<ConstBlock> inputs;
  for (size_t r = 0; r < kRanks; ++r) {
    outputs.push_back({to + r * bytes, bytes});
    inputs.push_back({from + r * bytes, bytes});
  }
  bool root = me.rank() == what.root;
  Call call = me.Next(what.kind, DType::kFloat32, count, what.root);
  switch (what.kind) {
    case Kind::kAllReduce:
      return AllReduce(me.backend(), from, data.size(), kSum, call);
    case Kind::kReduce:
      return Reduce(me.backend(), to, from, data.size(), kSum, call);
    case Kind::kBroadcast:
      return Broadcast(me.backend(), {from, 3 * bytes}, call);
    case Kind::kAllGather:
      return AllGather(me.backend(), outputs, inputs[0], call);
    case Kind::kGather:
      return Gather(me.backend(), root ? outputs : std::vector<Block>{}, inputs[0], call);
    case Kind::kScatter:
      return Scatter(me.backend(), outputs[0], root ? inputs : std::vector<ConstBlock>{}, call);
    case Kind::kAllToAll:
      return AllToAll(me.backend(), outputs, inputs, call);
    case Kind::kReduceScatter:
      return ReduceScatter(me.backend(), outputs[0], inputs, kSum, call);
    default:
      return Barrier(me.backend(), call);
  }
}

std::string MsSince(int64_t ticks) {
  Duration since = MonotonicClock().Now().time_since_epoch() - Duration(ticks);
  return std::to_string(std::chrono::duration_cast<milliseconds>(since).count());
}

struct Fate {
  What what;
  size_t count;
  int signal;
  milliseconds timeout = std::chrono::seconds(30);
};

// Makes calls until an error. Returns "<code> <ms since the signal> <ms in the
// call> <text>".
std::string CallUntilAnError(Shared& shared, const std::string& path, int rank, const Fate& fate) {
  auto store = store::FileStore::Open(path, "test");
  if (!store) return store.error().message;
  ShmRank me(**store, rank, kRanks);
  me.set_timeout(fate.timeout);
  std::vector<float> data(fate.count * kRanks), other(fate.count * kRanks);
  for (;;) {
    int64_t began = MonotonicClock().Now().time_since_epoch().count();
    auto done = Once(me, fate.what, data, other);
    if (done) {
      shared.calls[rank] += 1;
      continue;
    }
    return std::to_string(static_cast<int>(done.error().code)) + ' ' + MsSince(shared.hit_at) +
           ' ' + MsSince(began) + ' ' + done.error().message;
  }
}

struct Told {
  ErrorCode code;
  int64_t ms;       // since the signal
  int64_t call_ms;  // since the start of this rank's call
  std::string text;
};

// Returns the errors of the other ranks when rank 1 gets a signal during its
// calls.
std::vector<Told> HitAmid(const Fate& fate) {
  const InSharedMemory<Shared> shared;
  char path[] = "/tmp/rankrun-shm-test.XXXXXX";
  close(mkstemp(path));
  std::vector<std::unique_ptr<ChildProcess>> ranks;
  for (int r = 0; r < kRanks; ++r) {
    ranks.push_back(std::make_unique<ChildProcess>(
        [&, r] { return CallUntilAnError(*shared, path, r, fate); }));
  }
  TimePoint limit = MonotonicClock().Now() + std::chrono::seconds(30);
  while (shared->calls[0] < 20 || shared->calls[kVictim] < 20) {
    if (MonotonicClock().Now() > limit) break;
    std::this_thread::yield();
  }
  shared->hit_at = MonotonicClock().Now().time_since_epoch().count();
  ranks[kVictim]->Signal(fate.signal);
  std::vector<Told> told;
  for (int r = 0; r < kRanks; ++r) {
    if (r == kVictim) continue;
    std::istringstream text(ranks[static_cast<size_t>(r)]->Text());
    int code = -1;
    Told one{.code = ErrorCode::kSystem, .ms = -1, .call_ms = -1, .text = text.str()};
    text >> code >> one.ms >> one.call_ms >> std::ws;
    std::getline(text, one.text);
    one.code = static_cast<ErrorCode>(code);
    told.push_back(one);
  }
  ranks.clear();
  unlink(path);
  return told;
}

TEST(ShmDeathTimingTest, EndsEveryCollectiveOfAllOthersAtOnce) {
  std::vector<int64_t> times;
  for (const What& what : kCalls) {
    for (size_t count : {size_t{4}, size_t{200'000}}) {
      for (const Told& told : HitAmid({.what = what, .count = count, .signal = SIGKILL})) {
        EXPECT_EQ(told.code, ErrorCode::kPeerLost) << told.text;
        EXPECT_THAT(told.text, testing::MatchesRegex("rank 1 \\(pid [0-9]+\\) died"));
        EXPECT_LT(told.ms, kLoadedMs) << NameOf(what.kind) << ", root " << what.root;
        times.push_back(told.ms);
      }
    }
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], kPromptMs);
}

TEST(ShmDeathTest, ARankThatReturnsWithoutDestroyEndedWithItsExitCode) {
  for (const int code : {0, 3}) {
    char path[] = "/tmp/rankrun-shm-test.XXXXXX";
    close(mkstemp(path));
    auto body = [&](int rank) -> std::string {
      auto store = store::FileStore::Open(path, "run", {});
      ShmRank me(**store, rank, 2);
      EXPECT_TRUE(me.Barrier());
      if (rank == 1) exit(code);
      return me.Barrier().error().message;
    };
    ChildProcess stays([&] { return body(0); });
    const ChildProcess ends([&] { return body(1); });
    EXPECT_THAT(stays.Text(),
                testing::MatchesRegex("rank 1 \\(pid [0-9]+\\) ended without Destroy, with exit "
                                      "code " +
                                      std::to_string(code)));
    unlink(path);
  }
}

TEST(ShmDeathTest, AStoppedRankIsNamedAfterTheTimeout) {
  constexpr milliseconds kShort{1000};  // long enough for calls on a loaded machine
  for (const What& what : kCalls) {
    SCOPED_TRACE(std::string(NameOf(what.kind)) + ", root " + std::to_string(what.root));
    int64_t longest_ms = 0;
    for (const Told& told :
         HitAmid({.what = what, .count = 200'000, .signal = SIGSTOP, .timeout = kShort})) {
      EXPECT_EQ(told.code, ErrorCode::kTimeout) << told.text;
      EXPECT_THAT(told.text, testing::HasSubstr("rank 1"));
      EXPECT_LT(told.ms, kLoadedMs);
      longest_ms = std::max(longest_ms, told.call_ms);
    }
    EXPECT_GE(longest_ms, kShort.count()) << "the other rank may get the error of the first one";
  }
}

}  // namespace
}  // namespace rankrun::comm::shm
