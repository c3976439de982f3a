// Collectives over several streams, and calls that differ.

#include "comm/stream/exchange.h"

#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/comm/backend_calls.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using transport::BackendGroup;
using transport::Bytes;
using transport::TestCall;
using transport::Turn;
using Kind = Operation::Kind;

constexpr size_t kStripedBytes = size_t{256}
                                 << 10;  // as kMinStripedBytes in comm/stream/exchange.cc

BackendGroup Group(int ranks, const char* interfaces = "lo") {
  BackendGroup group("tcp", ranks);
  group.configure = [interfaces](BackendConfig& config) { config.network_interface = interfaces; };
  return group;
}

Result<void> Broadcast(Backend& backend, std::vector<int>& data, int root, uint64_t number) {
  TestCall call({.kind = Kind::kBroadcast,
                 .dtype = DType::kInt32,
                 .root = root,
                 .count = data.size(),
                 .number = number});
  return Broadcast(backend, {Bytes(data), data.size() * sizeof(int)}, call.call);
}
Result<void> AllReduce(Backend& backend, std::vector<int>& data, uint64_t number) {
  TestCall call(
      {.kind = Kind::kAllReduce, .dtype = DType::kInt32, .count = data.size(), .number = number});
  return AllReduce(backend, Bytes(data), data.size(), {DType::kInt32, ReduceOp::kSum}, call.call);
}
Result<void> Barrier(Backend& backend, uint64_t number) {
  TestCall call({.kind = Kind::kBarrier, .number = number});
  return Barrier(backend, call.call);
}

std::string InWords(const Result<void>& result) {
  if (result) return "ok";
  return (result.error().code == ErrorCode::kMismatch ? "mismatch: " : "error: ") +
         result.error().message;
}

// Runs `body` on each rank. Returns the texts of all.
std::vector<std::string> Told(const BackendGroup& group,
                              const std::function<std::string(Backend&, int rank)>& body) {
  std::vector<std::string> texts(static_cast<size_t>(group.ranks()));
  std::mutex mutex;
  group.Run([&](Backend& backend, int rank) {
    std::string text = body(backend, rank);
    std::lock_guard lock(mutex);
    texts[static_cast<size_t>(rank)] = text;
  });
  return texts;
}

struct TcpStreamsTest : testing::TestWithParam<const char*> {};

TEST_P(TcpStreamsTest, ALargeAllReduceHasTheRightResult) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    Group(ranks, GetParam()).Run([&](Backend& backend, int rank) {
      for (size_t bytes : {size_t{5} << 20, (size_t{5} << 20) + 4, size_t{1} << 20}) {
        std::vector<int> values(bytes / sizeof(int));
        std::vector<int> wanted(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<int>(i) * (rank + 1);
          wanted[i] = static_cast<int>(i) * ranks * (ranks + 1) / 2;
        }
        EXPECT_EQ(InWords(AllReduce(backend, values, bytes)), "ok");
        EXPECT_TRUE(values == wanted) << bytes << " bytes, " << ranks << " ranks";
      }
    });
  }
}

TEST_P(TcpStreamsTest, BlocksAroundTheSizeFromWhichTheyAreSplitArriveWhole) {
  Group(2, GetParam()).Run([&](Backend& backend, int rank) {
    uint64_t number = 0;
    for (size_t bytes : {size_t{4}, kStripedBytes - 4, kStripedBytes, kStripedBytes + 4,
                         2 * kStripedBytes + 60, kStripedBytes + 128, size_t{4}}) {
      for (int root : {0, 1}) {
        std::vector<int> wanted(bytes / sizeof(int));
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<int>(i * 7 + bytes);
        std::vector<int> values = rank == root ? wanted : std::vector<int>(wanted.size());
        EXPECT_EQ(InWords(Broadcast(backend, values, root, ++number)), "ok");
        EXPECT_TRUE(values == wanted) << bytes << " bytes";
      }
    }
  });
}

TEST_P(TcpStreamsTest, BothSizesOfALargeBlockAreNamed) {
  auto told = Told(Group(2, GetParam()), [](Backend& backend, int rank) {
    std::vector<std::byte> data(size_t{2} << 20);
    const size_t from_one = rank == 0 ? 300'000 : 400'000;  // rank 1 sends more than rank 0 expects
    std::vector<Block> outputs{{data.data(), 100}, {data.data() + 100, from_one}};
    ConstBlock input{data.data() + (size_t{1} << 20), rank == 0 ? 100 : from_one};
    TestCall call({.kind = Kind::kAllGather, .number = 1});
    auto ok = AllGather(backend, outputs, input, call.call);
    return InWords(ok ? Barrier(backend, 2) : ok);
  });
  EXPECT_THAT(
      told, Each(HasSubstr("mismatch: rank 1 sends 400000 bytes to rank 0, which expects 300000")));
}

INSTANTIATE_TEST_SUITE_P(Interfaces, TcpStreamsTest, testing::Values("lo", "lo,lo", "lo,lo,lo"),
                         [](const auto& each) {
                           return "lo" + std::to_string(std::string(each.param).size() / 3 + 1);
                         });

TEST(TcpExchangeTest, ARankMayCallLaterThanThePeerThatSends) {
  Turn ahead;
  auto told = Told(Group(2), [&](Backend& backend, int rank) {
    std::vector<int> data(10, rank);
    if (rank == 1) ahead.Await();
    auto sent = Broadcast(backend, data, 0, 1);
    ahead.Pass();  // rank 0: a small block is sent before rank 1 calls
    EXPECT_THAT(data, Each(0));
    std::vector<int> sum(10, 1);
    auto reduced = AllReduce(backend, sum, 2);
    EXPECT_THAT(sum, Each(2));
    return InWords(sent) + ", " + InWords(reduced);
  });
  EXPECT_THAT(told, Each("ok, ok"));
}

TEST(TcpExchangeTest, ARankThatIsManyCallsBehindCatchesUp) {
  constexpr int kCalls = 100;
  Turn ahead;
  auto told = Told(Group(2), [&](Backend& backend, int rank) {
    if (rank == 1) ahead.Await();
    for (int i = 1; i <= kCalls; ++i) {
      std::vector<int> data(10, rank == 0 ? i : 0);
      auto ok = Broadcast(backend, data, 0, static_cast<uint64_t>(i));
      if (!ok) return InWords(ok);
      EXPECT_THAT(data, Each(i));
    }
    ahead.Pass();
    return InWords(Barrier(backend, kCalls + 1));
  });
  EXPECT_THAT(told, Each("ok"));
}

TEST(TcpExchangeTest, ARankThatHasSkippedACallIsNamedByItsNextOne) {
  auto told = Told(Group(2), [&](Backend& backend, int rank) {
    std::vector<int> data(10, rank);
    if (rank == 1) return InWords(Barrier(backend, 1));
    auto ok = Broadcast(backend, data, 0, 1);
    return InWords(ok ? Barrier(backend, 2) : ok);
  });
  EXPECT_THAT(told, Each(HasSubstr("mismatch: rank 0 called Broadcast #1 (10 x int32 from rank 0); "
                                   "rank 1 called Barrier #1")));
}

TEST(TcpExchangeTest, TheSameCallWithAnotherNumberIsAMismatch) {
  auto told = Told(Group(2), [&](Backend& backend, int rank) {
    return InWords(Barrier(backend, rank == 0 ? 2 : 1));
  });
  EXPECT_THAT(told, Each(AllOf(HasSubstr("mismatch: "), HasSubstr("Barrier #1"))));
}

TEST(TcpExchangeTest, DifferingRootsFailTheNextCallWithBothCalls) {
  auto told = Told(Group(2), [](Backend& backend, int rank) {
    std::vector<int> data(10);
    std::string first = InWords(Broadcast(backend, data, rank, 1));
    return first + ", " + InWords(Barrier(backend, 2));
  });
  EXPECT_THAT(told,
              Each("ok, mismatch: rank 0 called Broadcast #1 (10 x int32 from rank 0); rank 1 "
                   "called Broadcast #1 (10 x int32 from rank 1)"));
}

TEST(TcpExchangeTest, DifferingRootsOfLargeBlocksFailTheSameCall) {
  auto told = Told(Group(2), [](Backend& backend, int rank) {
    std::vector<int> data(8 << 20);  // more than socket buffers hold
    return InWords(Broadcast(backend, data, rank, 1));
  });
  EXPECT_THAT(told, Each(HasSubstr("mismatch: rank 0 called Broadcast #1 (8388608 x int32 from "
                                   "rank 0); rank 1 called Broadcast #1 (8388608 x int32 from "
                                   "rank 1)")));
}

TEST(TcpExchangeTest, AnAbortEndsACollectiveOfAnotherThread) {
  BackendGroup group = Group(2);
  Turn done;
  group.Run([&](Backend& backend, int rank) {
    if (rank == 1) return done.Await();
    std::jthread other([&] { backend.Abort("enough"); });
    EXPECT_EQ(InWords(Barrier(backend, 1)), "error: enough");
    done.Pass();
  });
}

}  // namespace
}  // namespace rankrun::comm::stream
