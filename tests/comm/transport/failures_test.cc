// Backends with calls that differ, refusals, and ranks that die.

#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/status/status_page.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using Kind = Operation::Kind;

struct TransportFailuresTest : testing::TestWithParam<const char*> {
  static BackendGroup Group(int ranks) { return {GetParam(), ranks}; }
  static bool is_tcp() { return GetParam() == std::string("tcp"); }

  // Error of each rank, and the duration on the slowest one.
  struct Outcome {
    std::vector<std::string> messages;
    std::vector<ErrorCode> codes;
    milliseconds took;
  };

  using Body = std::function<Result<void>(Backend&, int rank)>;
  Outcome Told(const BackendGroup& group, const Body& body) {
    auto ranks = static_cast<size_t>(group.ranks());
    Outcome outcome{.messages = std::vector<std::string>(ranks, "ok"),
                    .codes = std::vector<ErrorCode>(ranks, ErrorCode::kSystem),
                    .took = {}};
    std::mutex mutex;
    group.Run([&](Backend& backend, int rank) {
      auto began = std::chrono::steady_clock::now();
      auto result = body(backend, rank);
      std::lock_guard lock(mutex);
      outcome.took = std::max(outcome.took, std::chrono::duration_cast<milliseconds>(
                                                std::chrono::steady_clock::now() - began));
      if (result) return;
      outcome.messages[static_cast<size_t>(rank)] = result.error().message;
      outcome.codes[static_cast<size_t>(rank)] = result.error().code;
    });
    return outcome;
  }

  static Result<void> AllReduce(Backend& backend, size_t count, uint64_t number,
                                milliseconds timeout = seconds(60)) {
    std::vector<float> values(count);
    TestCall call(
        {.kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = count, .number = number},
        timeout);
    return comm::AllReduce(backend, Bytes(values), count, {DType::kFloat32, ReduceOp::kSum},
                           call.call);
  }
  static Result<void> Barrier(Backend& backend, uint64_t number,
                              milliseconds timeout = seconds(60)) {
    TestCall call({.kind = Kind::kBarrier, .number = number}, timeout);
    return comm::Barrier(backend, call.call);
  }
};

struct TransportFailuresTimingTest : TransportFailuresTest {};

INSTANTIATE_TEST_SUITE_P(Backends, TransportFailuresTest, testing::ValuesIn(kBackends),
                         NameOfBackend);
INSTANTIATE_TEST_SUITE_P(Backends, TransportFailuresTimingTest, testing::ValuesIn(kBackends),
                         NameOfBackend);

TEST_P(TransportFailuresTimingTest, DifferentOperationsEndWithinASecondAndAllAreNamed) {
  auto told = Told(Group(3), [](Backend& backend, int rank) {
    if (auto ok = Barrier(backend, 1); !ok) return ok;
    return rank == 1 ? Barrier(backend, 2) : AllReduce(backend, 16, 2);
  });
  EXPECT_THAT(told.messages,
              Each(HasSubstr("ranks 0, 2 called AllReduce #2 (16 x float32, sum); rank 1 called "
                             "Barrier #2")));
  EXPECT_THAT(told.codes, Each(ErrorCode::kMismatch));
  EXPECT_LT(told.took, milliseconds(2000));  // 1 s, plus the load of the machine
}

TEST_P(TransportFailuresTest, DifferentCountsEndTheSameWayEvenIfOneIsZero) {
  for (size_t other : {20U, 0U}) {
    auto told = Told(Group(2), [&](Backend& backend, int rank) {
      return AllReduce(backend, rank == 0 ? 10 : other, 1);
    });
    EXPECT_THAT(told.messages,
                Each(HasSubstr("rank 0 called AllReduce #1 (10 x float32, sum); rank 1 called "
                               "AllReduce #1 (" +
                               std::to_string(other) + " x float32, sum)")));
  }
}

TEST_P(TransportFailuresTest, ACallWithoutMemoryReportsIt) {
#ifdef RANKRUN_SANITIZED
  GTEST_SKIP() << "sanitizers end the process at a block of that size";
#endif
  auto told = Told(Group(2), [](Backend& backend, int) {
    std::byte none{};
    size_t count = size_t{1} << 46;  // floats; exceeds the address space
    Reduction sum{DType::kFloat32, ReduceOp::kSum};
    TestCall call({.kind = is_tcp() ? Kind::kReduce : Kind::kAllReduce,
                   .dtype = DType::kFloat32,
                   .root = is_tcp() ? 0 : Operation::kNoRoot,
                   .count = count,
                   .number = 1});
    // tcp needs no memory to reduce in place.
    return is_tcp() ? comm::Reduce(backend, &none, &none, count, sum, call.call)
                    : comm::AllReduce(backend, &none, count, sum, call.call);
  });
  if (is_tcp()) {  // a rank that needs no memory gets the error of the other
    EXPECT_THAT(told.messages,
                AllOf(Contains("no memory for it"), Each(testing::EndsWith("no memory for it"))));
    EXPECT_THAT(told.codes, Contains(ErrorCode::kExhausted));
    return;
  }
  EXPECT_THAT(told.messages, Each("no memory for it"));
  EXPECT_THAT(told.codes, Each(ErrorCode::kExhausted));
}

TEST_P(TransportFailuresTimingTest, WhenAllCallsAreCheckedADifferenceIsFoundAtOnce) {
  milliseconds fastest = milliseconds::max();
  for (int i = 0; i < 5; ++i) {
    BackendGroup group = Group(3);
    group.configure = [](BackendConfig& config) { config.checks_all_calls = true; };
    auto told = Told(group, [](Backend& backend, int rank) {
      return rank == 1 ? Barrier(backend, 1) : AllReduce(backend, 16, 1);
    });
    EXPECT_THAT(told.messages, Each(HasSubstr("rank 1 called Barrier #1")));
    EXPECT_THAT(told.codes, Each(ErrorCode::kMismatch));
    fastest = std::min(fastest, told.took);
  }
  EXPECT_LT(fastest, milliseconds(500)) << "slow calls are compared after that time";
}

TEST_P(TransportFailuresTest, DifferingBlocksAreAMismatch) {
  auto told = Told(Group(3), [](Backend& backend, int rank) {
    std::vector<int> input(rank == 1 ? 10 : 9);
    std::vector<int> output(27);
    std::vector<Block> outputs;
    for (size_t r = 0; r < 3; ++r) {
      outputs.push_back({Bytes(output) + r * 36, r == 1 && rank == 1 ? 40U : 36U});
    }
    TestCall call({.kind = Kind::kAllGather, .dtype = DType::kInt32, .number = 4});
    auto ok = comm::AllGather(backend, outputs, ConstBlockOf(input), call.call);
    // tcp compares no sizes before data moves, and rank 1 gets all that it
    // expects.
    return ok && is_tcp() && rank == 1 ? Barrier(backend, 5) : ok;
  });
  EXPECT_THAT(told.messages, Each(AllOf(HasSubstr("rank 1 sends 40 bytes to rank"),
                                        HasSubstr("which expects 36"))));
  EXPECT_THAT(told.codes, Each(ErrorCode::kMismatch));
}

TEST_P(TransportFailuresTest, ARefusalEndsTheOthersCallsWithItsReason) {
  auto told = Told(Group(3), [](Backend& backend, int rank) -> Result<void> {
    if (rank != 2) return AllReduce(backend, 16, 3);
    TestCall call({.kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = 16, .number = 3});
    EXPECT_FALSE(backend.Refuse(call.call, "tensor has no data"));
    return Error{ErrorCode::kSystem,
                 "rank 2 refused AllReduce #3 (16 x float32, sum): tensor has no data"};
  });
  EXPECT_THAT(told.messages,
              Each("rank 2 refused AllReduce #3 (16 x float32, sum): tensor has no data"));
  EXPECT_THAT(told.codes, Each(ErrorCode::kSystem)) << "the group has ended";
}

TEST_P(TransportFailuresTest, ATimeoutNamesTheRankWaitedFor) {
  Turn timed_out;
  auto told = Told(Group(2), [&](Backend& backend, int rank) -> Result<void> {
    if (rank == 0) {
      auto result = Barrier(backend, 1, milliseconds(100));
      timed_out.Pass();
      return result;
    }
    timed_out.Await();
    return Error{ErrorCode::kTimeout, "timed out, waiting for rank 1"};
  });
  EXPECT_THAT(told.messages, Each(AllOf(HasSubstr("timed out"), HasSubstr("waiting for rank 1"))));
  EXPECT_THAT(told.codes, Each(ErrorCode::kTimeout));
}

TEST_P(TransportFailuresTest, ADeathMessageEndsAWait) {
  auto page = StatusPage::Create();
  ASSERT_TRUE(page);
  BackendGroup group = Group(2);
  group.configure = [&](BackendConfig& config) {
    if (config.group_rank == 0) config.deaths = DeathWatch(*page);
  };
  auto told = Told(group, [&](Backend& backend, int rank) {
    if (rank == 0) return Barrier(backend, 1);
    page->PublishPeerDeath("rank 7 was killed by SIGKILL");
    std::vector<int> never(1);
    auto transfer = backend.StartRecv(BlockOf(never), 0, {.tag = 0, .dtype = DType::kInt32});
    return (*transfer)->Wait(seconds(60));
  });
  EXPECT_THAT(told.messages, Each(HasSubstr("rank 7 was killed by SIGKILL")));
  EXPECT_THAT(told.codes, Each(ErrorCode::kCancelled));
}

}  // namespace
}  // namespace rankrun::comm::transport
