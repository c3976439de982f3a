// Ranks of the Gloo plug-in that are killed in the midst of an operation.

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "store/tcp_store.h"
#include "tests/comm/gloo_group.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Operation::Kind;

constexpr int kRanks = 4;
constexpr int kVictim = 1;
constexpr size_t kCount = 3 << 20;  // of floats: some milliseconds each

// One operation of `kind` with large blocks.
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
  const int root = static_cast<int>(number % kRanks);
  const TestCall call(
      {.kind = kind, .dtype = DType::kFloat32, .root = root, .count = kCount, .number = number});
  const Reduction sum{DType::kFloat32, ReduceOp::kSum};
  switch (kind) {
    case Kind::kAllReduce:
      return backend.AllReduce(Bytes(large), kCount, sum, call.call);
    case Kind::kReduce:
      return backend.Reduce(Bytes(large), Bytes(other), kCount, sum, call.call);
    case Kind::kBroadcast:
      return backend.Broadcast(BlockOf(large), call.call);
    case Kind::kAllGather:
      return backend.AllGather(outputs, inputs[0], call.call);
    case Kind::kGather:
      return backend.Gather(rank == root ? outputs : std::vector<Block>(), inputs[0], call.call);
    case Kind::kScatter:
      return backend.Scatter(outputs[0], rank == root ? inputs : std::vector<ConstBlock>(),
                             call.call);
    case Kind::kReduceScatter:
      return backend.ReduceScatter(outputs[0], inputs, sum, call.call);
    case Kind::kAllToAll:
      return backend.AllToAll(outputs, inputs, call.call);
    default:
      return backend.Barrier(call.call);
  }
}

// Works until it is told an error.
std::string Work(uint16_t port, int rank, Kind kind) {
  auto store = store::TcpStore::Connect("127.0.0.1", port);
  if (!store) return store.error().message;
  const GlooGroup group(kRanks);
  auto backend = GlooGroup::Create(group.Config(**store, rank));
  if (!backend) return backend.error().message;
  for (uint64_t number = 1;; ++number) {
    const auto result = Do(**backend, rank, kind, number);
    if (!result) return result.error().message;
    if (rank == 0 && number == 3) (void)(*store)->Set("under way", "");
  }
}

struct GlooDeathTest : testing::TestWithParam<Kind> {
  GlooDeathTest() {
    for (int r = 0; r < kRanks; ++r) {
      children.push_back(
          std::make_unique<ChildProcess>([&, r] { return Work(server.port(), r, GetParam()); }));
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

TEST_P(GlooDeathTest, EndsTheOthersOperationAndIsNamed) {
  children[kVictim]->Kill();
  const auto killed = std::chrono::steady_clock::now();
  ExpectAllNameTheVictim();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(3));
}

TEST_P(GlooDeathTest, IsNamedThoughTheStoreIsGone) {
  server.Kill();
  children[kVictim]->Kill();
  ExpectAllNameTheVictim();
}

INSTANTIATE_TEST_SUITE_P(Kinds, GlooDeathTest,
                         testing::Values(Kind::kAllReduce, Kind::kReduce, Kind::kBroadcast,
                                         Kind::kAllGather, Kind::kGather, Kind::kScatter,
                                         Kind::kReduceScatter, Kind::kAllToAll, Kind::kBarrier),
                         [](const auto& kind) { return std::string(NameOf(kind.param)); });

}  // namespace
}  // namespace rankrun::comm
