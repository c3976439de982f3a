#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/file_store.h"
#include "tests/comm/shm_ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using Kind = Operation::Kind;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kReduce,  Kind::kBroadcast,
                           Kind::kAllGather, Kind::kGather,  Kind::kScatter,
                           Kind::kAllToAll,  Kind::kBarrier, Kind::kReduceScatter};
constexpr Reduction kSum{.dtype = DType::kFloat32, .op = ReduceOp::kSum};

// What the test and its ranks know of each other.
struct Shared {
  std::atomic<int> calls[kRanks];
  std::atomic<int64_t> hit_at;  // of the clock, in ticks
};

Shared* NewShared() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Shared{};
}

// A call of one kind with `count` floats per rank.
Result<void> Once(ShmRank& me, Kind kind, std::vector<float>& data, std::vector<float>& other) {
  const std::size_t count = data.size() / kRanks;
  const std::size_t bytes = count * sizeof(float);
  auto* from = reinterpret_cast<std::byte*>(data.data());
  auto* to = reinterpret_cast<std::byte*>(other.data());
  std::vector<Block> outputs;
  std::vector<ConstBlock> inputs;
  for (std::size_t r = 0; r < kRanks; ++r) {
    outputs.push_back({to + r * bytes, bytes});
    inputs.push_back({from + r * bytes, bytes});
  }
  const bool root = me.rank() == 0;
  const Call call = me.Next(kind, DType::kFloat32, count, 0);
  switch (kind) {
    case Kind::kAllReduce:
      return me.backend().AllReduce(from, data.size(), kSum, call);
    case Kind::kReduce:
      return me.backend().Reduce(to, from, data.size(), kSum, call);
    case Kind::kBroadcast:
      return me.backend().Broadcast({from, 3 * bytes}, call);
    case Kind::kAllGather:
      return me.backend().AllGather(outputs, inputs[0], call);
    case Kind::kGather:
      return me.backend().Gather(root ? outputs : std::vector<Block>{}, inputs[0], call);
    case Kind::kScatter:
      return me.backend().Scatter(outputs[0], root ? inputs : std::vector<ConstBlock>{}, call);
    case Kind::kAllToAll:
      return me.backend().AllToAll(outputs, inputs, call);
    case Kind::kReduceScatter:
      return me.backend().ReduceScatter(outputs[0], inputs, kSum, call);
    default:
      return me.backend().Barrier(call);
  }
}

// Calls until an error: "<its code> <ms since the hit> <its text>".
std::string CallUntilAnError(Shared& shared, const std::string& path, int rank, Kind kind,
                             std::size_t count, milliseconds timeout) {
  auto store = store::FileStore::Open(path, "test");
  if (!store) return store.error().message;
  ShmRank me(**store, rank, kRanks);
  me.set_timeout(timeout);
  std::vector<float> data(count * kRanks), other(count * kRanks);
  for (;;) {
    auto done = Once(me, kind, data, other);
    if (done) {
      shared.calls[rank] += 1;
      continue;
    }
    const Duration since = MonotonicClock().Now().time_since_epoch() - Duration(shared.hit_at);
    std::ostringstream text;
    text << static_cast<int>(done.error().code) << ' '
         << std::chrono::duration_cast<milliseconds>(since).count() << ' ' << done.error().message;
    return text.str();
  }
}

struct Told {
  ErrorCode code;
  int64_t ms;
  std::string text;
};

// What the others are told when rank 1 gets a signal amid calls of this kind.
std::vector<Told> HitAmid(Kind kind, std::size_t count, int signal, milliseconds timeout) {
  Shared* shared = NewShared();
  char path[] = "/tmp/rankrun-shm-test.XXXXXX";
  close(mkstemp(path));
  std::vector<std::unique_ptr<ChildProcess>> ranks;
  for (int r = 0; r < kRanks; ++r) {
    ranks.push_back(std::make_unique<ChildProcess>(
        [&, r] { return CallUntilAnError(*shared, path, r, kind, count, timeout); }));
  }
  const TimePoint limit = MonotonicClock().Now() + std::chrono::seconds(30);
  while (shared->calls[0] < 20 || shared->calls[kVictim] < 20) {
    if (MonotonicClock().Now() > limit) break;
    std::this_thread::yield();
  }
  shared->hit_at = MonotonicClock().Now().time_since_epoch().count();
  ranks[kVictim]->Signal(signal);
  std::vector<Told> told;
  for (int r = 0; r < kRanks; ++r) {
    if (r == kVictim) continue;
    std::istringstream text(ranks[static_cast<std::size_t>(r)]->Text());
    int code = -1;
    Told one{.code = ErrorCode::kSystem, .ms = -1, .text = text.str()};
    text >> code >> one.ms >> std::ws;
    std::getline(text, one.text);
    one.code = static_cast<ErrorCode>(code);
    told.push_back(one);
  }
  ranks.clear();
  unlink(path);
  munmap(shared, sizeof(Shared));
  return told;
}

// How soon most are told.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kPromptMs = 500;
#else
constexpr int64_t kPromptMs = 50;
#endif

TEST(ShmDeathTest, EndsEveryCollectiveOfAllOthersAtOnce) {
  std::vector<int64_t> times;
  for (const Kind kind : kKinds) {
    for (const std::size_t count : {std::size_t{4}, std::size_t{200'000}}) {
      for (const Told& told : HitAmid(kind, count, SIGKILL, std::chrono::seconds(30))) {
        EXPECT_EQ(told.code, ErrorCode::kPeerLost) << told.text;
        EXPECT_THAT(told.text, testing::MatchesRegex("rank 1 \\(pid [0-9]+\\) died"));
        EXPECT_LT(told.ms, 1000) << NameOf(kind);  // on a loaded machine
        times.push_back(told.ms);
      }
    }
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], kPromptMs);
}

TEST(ShmDeathTest, AStoppedRankIsNamedWhenTheTimeIsOver) {
  for (const Kind kind : kKinds) {
    for (const Told& told : HitAmid(kind, 200'000, SIGSTOP, milliseconds(300))) {
      EXPECT_EQ(told.code, ErrorCode::kTimeout) << told.text;
      EXPECT_THAT(told.text, testing::HasSubstr("rank 1"));
      EXPECT_GE(told.ms, 250) << NameOf(kind);
      EXPECT_LT(told.ms, 2000) << NameOf(kind);
    }
  }
}

}  // namespace
}  // namespace rankrun::comm
