// Ranks that are killed during an operation of a backend.

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "store/clients/tcp_store.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/ranks.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::transport {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Operation::Kind;

constexpr int kRanks = 4;
constexpr int kVictim = 1;
constexpr size_t kCount = 3 << 20;  // floats; an operation takes some milliseconds

// Runs one operation of `kind` with large blocks.
Result<void> Do(Backend& backend, int rank, Kind kind, uint64_t number) {
  std::vector<float> large(kCount);
  std::vector<float> other(kCount);
  std::vector<Block> outputs;
  std::vector<ConstBlock> inputs;
  constexpr size_t kPart = kCount * sizeof(float) / kRanks;
  for (size_t r = 0; r < kRanks; ++r) {
    outputs.push_back({Bytes(large) + r * kPart, kPart});
    inputs.push_back({Bytes(other) + r * kPart, kPart});
  }
  int root = static_cast<int>(number % kRanks);
  TestCall call(
      {.kind = kind, .dtype = DType::kFloat32, .root = root, .count = kCount, .number = number});
  Reduction sum{DType::kFloat32, ReduceOp::kSum};
  switch (kind) {
    case Kind::kAllReduce:
      return AllReduce(backend, Bytes(large), kCount, sum, call.call);
    case Kind::kReduce:
      return Reduce(backend, Bytes(large), Bytes(other), kCount, sum, call.call);
    case Kind::kBroadcast:
      return Broadcast(backend, BlockOf(large), call.call);
    case Kind::kAllGather:
      return AllGather(backend, outputs, inputs[0], call.call);
    case Kind::kGather:
      return Gather(backend, rank == root ? outputs : std::vector<Block>(), inputs[0], call.call);
    case Kind::kScatter:
      return Scatter(backend, outputs[0], rank == root ? inputs : std::vector<ConstBlock>(),
                     call.call);
    case Kind::kReduceScatter:
      return ReduceScatter(backend, outputs[0], inputs, sum, call.call);
    case Kind::kAllToAll:
      return AllToAll(backend, outputs, inputs, call.call);
    default:
      return Barrier(backend, call.call);
  }
}

// Runs operations until an error.
std::string Work(const char* backend_name, uint16_t port, int rank, Kind kind) {
  auto store = store::TcpStore::Connect("127.0.0.1", port);
  if (!store) return store.error().message;
  BackendGroup group(backend_name, kRanks);
  auto backend = group.Create(group.Config(**store, rank));
  if (!backend) return backend.error().message;
  for (uint64_t number = 1;; ++number) {
    auto result = Do(**backend, rank, kind, number);
    if (!result) return result.error().message;
    if (rank == 0 && number == 3) (void)(*store)->Set("under way", "");
  }
}

struct TransportDeathTest : testing::TestWithParam<std::tuple<const char*, Kind>> {
  TransportDeathTest() {
    for (int r = 0; r < kRanks; ++r) {
      children.push_back(std::make_unique<ChildProcess>([&, r] {
        auto [backend, kind] = GetParam();
        return Work(backend, server.port(), r, kind);
      }));
    }
    auto store = store::TcpStore::Connect("127.0.0.1", server.port());
    EXPECT_TRUE(store && (*store)->Get("under way", seconds(60)));
  }

  void ExpectAllNameTheVictim() {
    for (int r = 0; r < kRanks; ++r) {
      if (r == kVictim) continue;
      EXPECT_THAT(children[static_cast<size_t>(r)]->Text(), HasSubstr("lost rank 1")) << r;
    }
  }

  ServerProcess server;
  std::vector<std::unique_ptr<ChildProcess>> children;
};

struct TransportDeathTimingTest : TransportDeathTest {};

TEST_P(TransportDeathTimingTest, EndsTheOthersOperationAndIsNamed) {
  children[kVictim]->Kill();
  auto killed = std::chrono::steady_clock::now();
  ExpectAllNameTheVictim();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(3));
}

TEST_P(TransportDeathTest, IsNamedThoughTheStoreIsGone) {
  server.Kill();
  children[kVictim]->Kill();
  ExpectAllNameTheVictim();
}

// Two ranks; rank 1 dies after rank 0 has reported that the operation is under
// way.
struct TransportPairDeathTest : testing::TestWithParam<const char*> {
  using Body = std::function<std::string(Backend& backend, store::Store& store)>;

  std::string Run(uint16_t port, int rank, const Body& body) {
    auto store = store::TcpStore::Connect("127.0.0.1", port);
    if (!store) return store.error().message;
    BackendGroup group(GetParam(), 2);
    auto backend = group.Create(group.Config(**store, rank));
    return backend ? body(**backend, **store) : backend.error().message;
  }

  // Returns the text of rank 0.
  std::string Told(const Body& zero, const Body& one) {
    ChildProcess survivor([&] { return Run(server.port(), 0, zero); });
    ChildProcess victim([&] { return Run(server.port(), 1, one); });
    auto store = store::TcpStore::Connect("127.0.0.1", server.port());
    EXPECT_TRUE(store && (*store)->Get("under way", seconds(60)));
    victim.Kill();
    return survivor.Text();
  }

  // Broadcasts from rank 0 until one fails.
  static std::string Broadcast(Backend& backend, int rank, store::Store& store) {
    std::vector<float> large(16 << 20);
    for (uint64_t number = 1;; ++number) {
      TestCall call({.kind = Kind::kBroadcast,
                     .dtype = DType::kFloat32,
                     .root = 0,
                     .count = large.size(),
                     .number = number});
      auto result = comm::Broadcast(backend, BlockOf(large), call.call);
      if (!result) return result.error().message;
      if (rank == 0 && number == 3) (void)store.Set("under way", "");
    }
  }

  ServerProcess server;
};

TEST_P(TransportPairDeathTest, AnUnexpectedMessageDoesNotHideTheLoss) {
  auto began = std::chrono::steady_clock::now();
  const std::string told =
      Told([](Backend& backend, store::Store& store) { return Broadcast(backend, 0, store); },
           [](Backend& backend, store::Store& store) {
             std::vector<int> word(1);
             const auto unasked =
                 backend.StartSend(ConstBlockOf(word), 0, {.tag = 0, .dtype = DType::kInt32});
             return Broadcast(backend, 1, store);
           });
  EXPECT_THAT(told, HasSubstr("lost rank 1"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30)) << "half the time-out";
}

// Rank 0 waits for rank 1, which lives and does not call; rank 2 dies.
TEST_P(TransportPairDeathTest, ADeathIsNoticedWhileALivingRankIsAwaited) {
  auto store = store::TcpStore::Connect("127.0.0.1", server.port());
  ASSERT_TRUE(store);
  auto run = [&](int rank) -> std::string {
    auto own = store::TcpStore::Connect("127.0.0.1", server.port());
    if (!own) return own.error().message;
    BackendGroup group(GetParam(), 3);
    auto backend = group.Create(group.Config(**own, rank));
    if (!backend) return backend.error().message;
    if (rank != 0) return (*own)->Get("told", seconds(60)) ? "" : "nobody was told";
    (void)(*own)->Set("under way", "");
    std::vector<float> data(4);
    TestCall call(
        {.kind = Kind::kBroadcast, .dtype = DType::kFloat32, .root = 1, .count = 4, .number = 1});
    auto result = comm::Broadcast(**backend, BlockOf(data), call.call);
    (void)(*own)->Set("told", "");
    return result ? "no error" : result.error().message;
  };
  ChildProcess survivor([&] { return run(0); });
  ChildProcess awaited([&] { return run(1); });
  ChildProcess victim([&] { return run(2); });
  EXPECT_TRUE((*store)->Get("under way", seconds(60)));
  victim.Kill();
  EXPECT_THAT(survivor.Text(), HasSubstr("lost rank 2"));
  EXPECT_EQ(awaited.Text(), "");
}

const auto kKinds = testing::Values(Kind::kAllReduce, Kind::kReduce, Kind::kBroadcast,
                                    Kind::kAllGather, Kind::kGather, Kind::kScatter,
                                    Kind::kReduceScatter, Kind::kAllToAll, Kind::kBarrier);
const auto kAll = testing::Combine(testing::ValuesIn(kBackends), kKinds);
const auto kNameOf = [](const auto& info) {
  auto [backend, kind] = info.param;
  return std::string(backend) + "_" + NameOf(kind);
};
INSTANTIATE_TEST_SUITE_P(Kinds, TransportDeathTest, kAll, kNameOf);
INSTANTIATE_TEST_SUITE_P(Kinds, TransportDeathTimingTest, kAll, kNameOf);
INSTANTIATE_TEST_SUITE_P(Backends, TransportPairDeathTest, testing::ValuesIn(kBackends),
                         NameOfBackend);

}  // namespace
}  // namespace rankrun::comm::transport
