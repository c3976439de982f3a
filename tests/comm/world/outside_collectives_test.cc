// Collectives that an outside backend carries out itself: rankrun/backend.h.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "base/status/status_page.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/world/outside_ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using transport::BlockOf;
using transport::Bytes;
using transport::ConstBlockOf;
using transport::TestCall;
using Kind = Operation::Kind;

constexpr Reduction kSum{.dtype = DType::kInt32, .op = ReduceOp::kSum};

// A backend that carries out the calls for which `takes` says so.
class OwnBackend : public TestBackend {
 public:
  struct State {
    OwnBackend* owner;
    int rank;
  };
  using Takes = std::function<bool(int rank, const rankrun_backend_call& call)>;
  using Run =
      std::function<rankrun_status(int rank, const rankrun_backend_call& call, std::string& why)>;

  rankrun_backend Description() {
    rankrun_backend backend = TestBackend::Description();
    backend.open_group = [](void* context, const rankrun_backend_group* group, void** state,
                            char* reason, size_t reason_size) {
      auto& own = *static_cast<OwnBackend*>(static_cast<TestBackend*>(context));
      if (own.rank_without_state == group->rank) {
        snprintf(reason, reason_size, "no room");
        return RANKRUN_BACKEND;
      }
      own.states += 1;
      *state = new State{&own, group->rank};
      return RANKRUN_OK;
    };
    backend.takes = [](void* state, const rankrun_backend_call* call) {
      auto& [own, rank] = *static_cast<State*>(state);
      return own->takes(rank, *call) ? 1 : 0;
    };
    backend.run = [](void* state, const rankrun_backend_call* call, char* reason,
                     size_t reason_size) {
      auto& [own, rank] = *static_cast<State*>(state);
      own->runs += 1;
      std::string why;
      rankrun_status status = own->run(rank, *call, why);
      snprintf(reason, reason_size, "%s", why.c_str());
      return status;
    };
    backend.close_group = [](void* state) {
      static_cast<State*>(state)->owner->states -= 1;
      delete static_cast<State*>(state);
    };
    return backend;
  }

  Takes takes = [](int, const rankrun_backend_call&) { return true; };
  Run run;
  int rank_without_state = -1;
  std::atomic<int> runs = 0;
  std::atomic<int> states = 0;  // that are not closed
};

// Carries out all collectives of ranks that are threads.
class InMemory {
 public:
  explicit InMemory(int ranks) : ranks_(static_cast<size_t>(ranks)) {}

  rankrun_status Run(int rank, const rankrun_backend_call& call) {
    auto all = Meet(rank, call);
    if (all.empty()) return RANKRUN_TIMEOUT;
    std::vector<std::vector<std::byte>> results;
    for (size_t i = 0; i < call.output_count; ++i) {
      results.push_back(ResultOf(all, static_cast<size_t>(rank), i));
    }
    if (Meet(rank, call).empty()) return RANKRUN_TIMEOUT;  // all have read
    for (size_t i = 0; i < call.output_count; ++i) {
      if (call.kind == RANKRUN_CALL_REDUCE && call.root != rank) continue;
      std::ranges::copy(results[i], static_cast<std::byte*>(call.outputs[i].data));
    }
    return RANKRUN_OK;
  }

 private:
  using Calls = std::vector<const rankrun_backend_call*>;

  // Returns the calls of all ranks; empty if the call is cancelled.
  Calls Meet(int rank, const rankrun_backend_call& call) {
    auto own = static_cast<size_t>(rank);
    std::unique_lock lock(mutex_);
    Calls& calls = meetings_[meetings_of_[own]++];
    calls.resize(ranks_);
    calls[own] = &call;
    while (std::ranges::count(calls, nullptr) > 0) {
      lock.unlock();
      if (call.is_cancelled(&call) != 0) return {};
      std::this_thread::yield();
      lock.lock();
    }
    return calls;
  }

  static std::vector<std::byte> ResultOf(const Calls& all, size_t rank, size_t i) {
    auto root = static_cast<size_t>(std::max(all[rank]->root, 0));
    switch (all[rank]->kind) {
      case RANKRUN_CALL_ALL_REDUCE:
      case RANKRUN_CALL_REDUCE:
        return Reduced(all, 0);
      case RANKRUN_CALL_REDUCE_SCATTER:
        return Reduced(all, rank);
      case RANKRUN_CALL_BROADCAST:
        return Copied(all[root]->outputs[0]);
      case RANKRUN_CALL_SCATTER:
        return Copied(all[root]->inputs[rank]);
      case RANKRUN_CALL_ALL_TO_ALL:
        return Copied(all[i]->inputs[rank]);
      default:
        return Copied(all[i]->inputs[0]);
    }
  }
  static std::vector<std::byte> Copied(const rankrun_bytes& block) {
    const auto* begin = static_cast<const std::byte*>(block.data);
    return {begin, begin + block.size};
  }
  static std::vector<std::byte> Reduced(const Calls& all, size_t input) {
    std::vector<const void*> inputs;
    for (const auto* call : all) inputs.push_back(call->inputs[input].data);
    std::vector<std::byte> result(all[0]->inputs[input].size);
    const Reduction reduction{.dtype = static_cast<DType>(all[0]->dtype),
                              .op = static_cast<ReduceOp::Kind>(all[0]->op),
                              .divisor = all[0]->divisor};
    Reduce(reduction, result.data(), inputs, result.size() / SizeOf(reduction.dtype));
    return result;
  }

  const size_t ranks_;
  std::mutex mutex_;
  std::array<int, 4> meetings_of_{};  // by rank
  std::map<int, Calls> meetings_;
};

struct OutsideCollectivesTest : OutsideRanks {
  rankrun_backend Description() override { return own.Description(); }
  ~OutsideCollectivesTest() override { EXPECT_EQ(own.states, 0); }

  void CarryOut(int ranks) {
    in_memory = std::make_unique<InMemory>(ranks);
    own.run = [&](int rank, const rankrun_backend_call& call, std::string&) {
      return in_memory->Run(rank, call);
    };
  }

  OwnBackend own;
  std::unique_ptr<InMemory> in_memory;
};

using Ints = std::vector<int>;

// Runs all collectives of three ranks, and returns the names of failed ones. Rank r's blocks have r
// + 1 elements where they may differ.
std::string WrongResults(Backend& backend, int rank) {
  std::string wrong;
  uint64_t number = 0;
  auto expect = [&](Kind kind, const Result<void>& ok, bool right) {
    if (!ok || !right) wrong += std::string(NameOf(kind)) + " " + (ok ? "" : ok.error().message);
  };
  auto call_of = [&](Kind kind, int root = Operation::kNoRoot) {
    return TestCall({.kind = kind, .dtype = DType::kInt32, .root = root, .number = ++number});
  };
  Ints sum(5, rank + 1);
  auto ok = AllReduce(backend, Bytes(sum), 5, kSum, call_of(Kind::kAllReduce).call);
  expect(Kind::kAllReduce, ok, sum == Ints(5, 6));
  Ints mean(2, 3 * rank);
  ok = AllReduce(backend, Bytes(mean), 2, {DType::kInt32, ReduceOp::kSum, 3},
                 call_of(Kind::kAllReduce).call);
  expect(Kind::kAllReduce, ok, mean == Ints(2, 3));
  Ints reduced{7};
  const Ints one{rank + 1};
  ok = Reduce(backend, Bytes(reduced), ConstBlockOf(one).data, 1, kSum,
              call_of(Kind::kReduce, 2).call);
  expect(Kind::kReduce, ok, reduced == Ints{rank == 2 ? 6 : 7});
  Ints data(4, rank);
  ok = Broadcast(backend, BlockOf(data), call_of(Kind::kBroadcast, 1).call);
  expect(Kind::kBroadcast, ok, data == Ints(4, 1));

  auto size = static_cast<size_t>(rank) + 1;
  const Ints mine(size, rank);
  std::array<Ints, 3> all{Ints(1, 9), Ints(2, 9), Ints(3, 9)};
  const std::array<Ints, 3> gathered{Ints(1, 0), Ints(2, 1), Ints(3, 2)};
  std::vector<Block> outputs;
  for (Ints& each : all) outputs.push_back(BlockOf(each));
  ok = AllGather(backend, outputs, ConstBlockOf(mine), call_of(Kind::kAllGather).call);
  expect(Kind::kAllGather, ok, all == gathered);
  for (Ints& each : all) std::ranges::fill(each, 9);
  ok = Gather(backend, rank == 0 ? outputs : std::vector<Block>(), ConstBlockOf(mine),
              call_of(Kind::kGather, 0).call);
  expect(Kind::kGather, ok, rank != 0 || all == gathered);
  std::vector<ConstBlock> inputs;
  for (const Ints& each : gathered) inputs.push_back(ConstBlockOf(each));
  Ints own(size, 9);
  ok = Scatter(backend, BlockOf(own), rank == 1 ? inputs : std::vector<ConstBlock>(),
               call_of(Kind::kScatter, 1).call);
  expect(Kind::kScatter, ok, own == mine);
  ok = ReduceScatter(backend, BlockOf(own), inputs, kSum, call_of(Kind::kReduceScatter).call);
  expect(Kind::kReduceScatter, ok, own == Ints(size, 3 * rank));
  std::array<Ints, 3> from{Ints(size, 9), Ints(size, 9), Ints(size, 9)};
  std::vector<Block> rows;
  for (Ints& each : from) rows.push_back(BlockOf(each));
  ok = AllToAll(backend, rows, inputs, call_of(Kind::kAllToAll).call);
  expect(Kind::kAllToAll, ok, from == std::array{mine, mine, mine});
  expect(Kind::kBarrier, Barrier(backend, call_of(Kind::kBarrier).call), true);
  return wrong;
}

TEST_F(OutsideCollectivesTest, TheBackendCarriesOutAllCollectives) {
  CarryOut(3);
  EXPECT_THAT(OnRanks(3, WrongResults), Each(IsEmpty()));
  EXPECT_EQ(own.runs, 30);
}

TEST_F(OutsideCollectivesTest, TheSchedulesCarryOutWhatItLeaves) {
  for (int left = RANKRUN_CALL_ALL_REDUCE; left <= RANKRUN_CALL_BARRIER; ++left) {
    CarryOut(3);
    own.runs = 0;
    own.takes = [&](int, const rankrun_backend_call& call) { return call.kind != left; };
    EXPECT_THAT(OnRanks(3, WrongResults), Each(IsEmpty())) << left;
    EXPECT_EQ(own.runs, left == RANKRUN_CALL_ALL_REDUCE ? 24 : 27);
  }
}

// Runs an AllReduce of `count` elements as the call of that number.
Result<void> Reducing(Backend& backend, size_t count, uint64_t number = 1,
                      milliseconds timeout = std::chrono::seconds(60)) {
  Ints data(count, 1);
  const TestCall call(
      {.kind = Kind::kAllReduce, .dtype = DType::kInt32, .count = count, .number = number},
      timeout);
  auto ok = AllReduce(backend, Bytes(data), count, kSum, call.call);
  if (ok) return backend.Conclude(call.call);
  EXPECT_EQ(data, Ints(count, 1)) << "a failed call has written its result";
  return ok;
}

TEST_F(OutsideCollectivesTest, CallsThatDifferFailBeforeItRuns) {
  CarryOut(3);
  EXPECT_THAT(
      OnRanks(3, [](Backend& b, int rank) { return InWords(Reducing(b, rank == 1 ? 4 : 3)); }),
      Each("ranks 0, 2 called AllReduce #1 (3 x int32, sum) by the backend itself; rank 1 "
           "called AllReduce #1 (4 x int32, sum) by the backend itself"));
  EXPECT_EQ(own.runs, 0);
}

TEST_F(OutsideCollectivesTest, SizesThatDifferFailBeforeItRuns) {
  CarryOut(2);
  EXPECT_THAT(OnRanks(2,
                      [](Backend& b, int rank) {
                        Ints input(rank == 0 ? 2 : 3);
                        Ints first(2), second(2);
                        const std::vector<Block> outputs{BlockOf(first), BlockOf(second)};
                        const TestCall call(
                            {.kind = Kind::kAllGather, .dtype = DType::kInt32, .number = 1});
                        return InWords(AllGather(b, outputs, ConstBlockOf(input), call.call));
                      }),
              Each(HasSubstr("rank 1 sends 3 elements, and rank 0 has room for 2")));
  EXPECT_EQ(own.runs, 0);
}

TEST_F(OutsideCollectivesTest, RanksThatDecideDifferentlyFail) {
  CarryOut(2);
  own.takes = [](int rank, const rankrun_backend_call&) { return rank == 1; };
  EXPECT_THAT(OnRanks(2, [](Backend& b, int) { return InWords(Reducing(b, 3)); }),
              Each("rank 0 called AllReduce #1 (3 x int32, sum); rank 1 called AllReduce #1 (3 x "
                   "int32, sum) by the backend itself"));
  EXPECT_EQ(own.runs, 0);
}

TEST_F(OutsideCollectivesTest, AFailureOfOneRankEndsTheCallOfAll) {
  CarryOut(3);
  auto good = own.run;
  own.run = [&](int rank, const rankrun_backend_call& call, std::string& why) {
    if (rank != 1) return good(rank, call, why);
    why = "no such wire";
    return RANKRUN_INVALID;  // no refusal: the group breaks
  };
  auto told = OnRanks(3, [](Backend& b, int) {
    std::string first = InWords(Reducing(b, 3));
    return first + " | " + InWords(Reducing(b, 3, 2));
  });
  const std::string why = "the backend test: no such wire";
  EXPECT_EQ(told[1], why + " | AllReduce #1 (3 x int32, sum): " + why);
  for (size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_THAT(told[rank],
                testing::StartsWith("rank 1: AllReduce #1 (3 x int32, sum): " + why + " | "));
  }
}

TEST_F(OutsideCollectivesTest, ARankThatIsLateInItTimesOut) {
  CarryOut(2);
  auto good = own.run;
  own.run = [&](int rank, const rankrun_backend_call& call, std::string& why) {
    if (rank == 0) return good(rank, call, why);
    while (call.is_cancelled(&call) == 0) std::this_thread::yield();
    return RANKRUN_OK;  // too late: its peer has given up
  };
  auto told = OnRanks(2, [](Backend& b, int rank) {
    return InWords(Reducing(b, 3, 1, rank == 0 ? milliseconds(50) : milliseconds(60'000)));
  });
  const std::string why = "timed out after 50 ms in a collective of the backend's own";
  EXPECT_EQ(told[0], why);
  EXPECT_EQ(told[1], "rank 0: AllReduce #1 (3 x int32, sum): " + why);
}

TEST_F(OutsideCollectivesTest, ADeathEndsIt) {
  auto page = StatusPage::Create();
  ASSERT_TRUE(page);
  configure = [&](BackendConfig& config) { config.deaths = DeathWatch(*page); };
  own.run = [&](int rank, const rankrun_backend_call& call, std::string&) {
    if (rank == 0) page->PublishPeerDeath("rank 2 was killed by SIGKILL");
    while (call.is_cancelled(&call) == 0) std::this_thread::yield();
    return RANKRUN_BACKEND;
  };
  EXPECT_THAT(OnRanks(2, [](Backend& b, int) { return InWords(Reducing(b, 3)); }),
              Each(HasSubstr("rank 2 was killed by SIGKILL")));
}

TEST_F(OutsideCollectivesTest, AbortEndsItAndWaitsForIt) {
  CarryOut(2);
  std::atomic<bool> is_running = false;
  std::atomic<bool> has_ended = false;
  own.run = [&](int rank, const rankrun_backend_call& call, std::string&) {
    if (rank == 0) {
      is_running = true;
      is_running.notify_all();
    }
    while (call.is_cancelled(&call) == 0) std::this_thread::yield();
    if (rank == 0) has_ended = true;
    return RANKRUN_BACKEND;
  };
  auto told = OnRanks(2, [&](Backend& b, int rank) {
    std::jthread aborter([&] {
      if (rank != 0) return;
      is_running.wait(false);
      b.Abort("rank 0 aborted the group");
      EXPECT_TRUE(has_ended) << "a block may be touched after Abort";
    });
    return InWords(Reducing(b, 3));
  });
  EXPECT_THAT(told, Each(HasSubstr("rank 0 aborted the group")));
}

TEST_F(OutsideCollectivesTest, AGroupThatItCannotOpenIsAnErrorOnAllRanks) {
  own.rank_without_state = 1;
  EXPECT_THAT(OnRanks(3, [](Backend&, int) { return "ok"; }), Each("error: rank 1: no room"));
}

TEST_F(OutsideCollectivesTest, AllItsFunctionsMustBeThere) {
  const std::map<std::string, void (*)(rankrun_backend&)> clears = {
      {"open_group", [](rankrun_backend& b) { b.open_group = nullptr; }},
      {"takes", [](rankrun_backend& b) { b.takes = nullptr; }},
      {"run", [](rankrun_backend& b) { b.run = nullptr; }},
      {"close_group", [](rankrun_backend& b) { b.close_group = nullptr; }}};
  for (const auto& [name, clear] : clears) {
    rankrun_backend bad = own.Description();
    clear(bad);
    EXPECT_EQ(InWords(CheckOutsideBackend(bad)),
              "the function " + name + " of the backend is NULL: want a function");
  }
}

TEST_F(OutsideCollectivesTest, AnOlderStructHasNoneOfThem) {
  rankrun_backend old = own.Description();
  old.size = offsetof(rankrun_backend, open_group);
  EXPECT_EQ(InWords(CheckOutsideBackend(old)), "ok");
  const rankrun_backend complete = Complete(old);
  EXPECT_EQ(complete.close, old.close);
  EXPECT_EQ(complete.run, nullptr);
}

}  // namespace
}  // namespace rankrun::comm
