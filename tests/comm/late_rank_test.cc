// A rank that comes to a collective after others have failed in it: it gets no
// result either.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <array>
#include <atomic>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <rankrun/distributed.h>

#include "base/process/process_handle.h"
#include "tests/comm/late_calls.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr milliseconds kTimeout{100};  // that runs out in each call
constexpr size_t kCounts[] = {2, 300'000};
constexpr int kLateRanks[] = {2,
                              3};  // in a hierarchy: the one that represents its host, and another

// One call, for which `late_rank` is late.
struct LateCase {
  std::string name;
  size_t count;
  int late_rank;

  const LateCall& call() const { return LateCalls().at(name); }
  int root() const { return call().results == LateCall::Results::kAllButRoot ? late_rank : 0; }
  // Whether `rank` needs something of the late one. Others may only send.
  bool waits(int rank) const {
    return rank != late_rank && (call().results != LateCall::Results::kRoot || rank == root());
  }
};

// Returns the outcome of the call on this rank. The late rank comes when all others have theirs.
std::string OutcomeIn(const LateCase& late, std::atomic<int>& returned) {
  ProcessGroup& group = NewGroup({});
  bool is_late = group.global_rank() == late.late_rank;
  while (is_late && returned.load() < kRanks - 1) std::this_thread::yield();
  const milliseconds timeout = is_late ? milliseconds(60'000) : kTimeout;
  std::string outcome = OutcomeOf([&] {
    late.call().run(group, late.count, GlobalRank{late.root()}, CallOptions{.timeout = timeout});
  });
  returned.fetch_add(1);
  return outcome;
}

// Returns the outcomes of all ranks, one list per case.
std::vector<std::vector<std::string>> OutcomesOf(const std::vector<LateCase>& cases,
                                                 const char* backend) {
  InSharedMemory<std::array<std::atomic<int>, 16>> returned;
  auto told = InWorld(kRanks, backend, [&](ProcessGroup& world) {
    std::string outcomes;
    for (size_t i = 0; i < cases.size(); ++i) {
      outcomes += OutcomeIn(cases[i], (*returned)[i]) + '\n';
      world.Barrier();
    }
    return outcomes;
  });
  std::vector<std::vector<std::string>> by_case(cases.size(), std::vector<std::string>(kRanks));
  for (size_t r = 0; r < kRanks; ++r) {
    std::istringstream lines(told[r]);
    for (auto& outcomes : by_case) std::getline(lines, outcomes[r]);
  }
  return by_case;
}

struct LateRankTest : testing::TestWithParam<std::tuple<const char*, std::string>> {};

std::vector<std::string> NamesOfCalls() {
  std::vector<std::string> names;
  for (const auto& [name, call] : LateCalls()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Calls, LateRankTest,
                         testing::Combine(testing::Values("shm", "tcp", "hierarchical", "gloo"),
                                          testing::ValuesIn(NamesOfCalls())),
                         [](const auto& info) {
                           return std::get<1>(info.param) + "_" + std::get<0>(info.param);
                         });

TEST_P(LateRankTest, ARankThatComesAfterATimeoutGetsNoResult) {
  const auto& [backend, name] = GetParam();
  std::vector<LateCase> cases;
  for (size_t count : kCounts) {
    for (int late_rank : kLateRanks) cases.push_back({name, count, late_rank});
  }
  auto outcomes = OutcomesOf(cases, backend);
  for (size_t i = 0; i < cases.size(); ++i) {
    const LateCase& late = cases[i];
    SCOPED_TRACE(std::to_string(late.count) + " elements, rank " + std::to_string(late.late_rank) +
                 " is late");
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string& outcome = outcomes[i][static_cast<size_t>(rank)];
      if (late.waits(rank)) {
        EXPECT_NE(outcome, "success") << "rank " << rank;
      }
      if (rank != late.late_rank) continue;
      EXPECT_THAT(outcome, AllOf(HasSubstr(name + " #1"),
                                 AnyOf(HasSubstr("timed out"), HasSubstr("has not called"))));
    }
  }
}

// Rank 2 waits for rank 0, which waits for rank 1, and times out first.
struct TwoTimeOutsTimingTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, TwoTimeOutsTimingTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(TwoTimeOutsTimingTest, ARankNamesTheOneForWhichItWaitsThoughAPeerTimesOutFirst) {
  InSharedMemory<std::atomic<int>> returned;
  auto told = InWorld(kRanks, GetParam(), [&](ProcessGroup& world) {
    ProcessGroup& group = NewGroup({});
    const int rank = world.global_rank();
    if (rank == 1) {
      while (returned->load() < kRanks - 1) std::this_thread::yield();
    }
    const milliseconds timeout(rank == 2 ? 930 : 1000);
    const std::string outcome = OutcomeOf([&] {
      LateCalls().at("Gather").run(group, 300'000, GlobalRank{0}, CallOptions{.timeout = timeout});
    });
    returned->fetch_add(1);
    return outcome;
  });
  EXPECT_THAT(told[0], HasSubstr("rank 1"));
}

struct LateTextTimingTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, LateTextTimingTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(LateTextTimingTest, ALateRankHearsThatTheCallHadFailedBefore) {
  InSharedMemory<std::atomic<int>> returned;
  auto told = InWorld(kRanks, GetParam(), [&](ProcessGroup& world) {
    bool is_late = world.global_rank() == 1;
    std::string outcomes;
    for (bool is_monitored : {true, false}) {
      const int others = (is_monitored ? 1 : 2) * (kRanks - 1);
      while (is_late && returned->load() < others) std::this_thread::yield();
      if (is_late) std::this_thread::sleep_for(milliseconds(20));  // more than clocks may differ
      const milliseconds timeout = is_late ? milliseconds(60'000) : kTimeout;
      std::vector<int> data{1};
      outcomes += OutcomeOf([&] {
        is_monitored ? world.MonitoredBarrier(timeout) : void(world.AllReduce(data, timeout));
      });
      if (!is_late) returned->fetch_add(1);
    }
    return outcomes;
  });
  const std::string here = " of the world process group, rank 1 of 4: failed ";
  const std::string before = " s before this rank came: ";
  EXPECT_THAT(told[1], AllOf(HasSubstr("MonitoredBarrier #1" + here),
                             HasSubstr("AllReduce #1 (1 x int32, sum)" + here),
                             HasSubstr(before + "3 of 4 present"), HasSubstr(before + "rank ")));
  for (size_t rank : {size_t{0}, size_t{2}, size_t{3}}) {
    EXPECT_THAT(told[rank], testing::Not(HasSubstr("before this rank came")));
  }
}

// Returns the rank, of 1 and 2, that the root of a broadcast serves before the other.
int FirstServed(const std::string& backend) { return backend == "gloo" ? 1 : 2; }

struct EndedRankTimingTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, EndedRankTimingTest,
                         testing::Values("tcp", "hierarchical", "gloo"), NameOfBackend);

// A rank ends, without Destroy, while others still wait for a late one.
TEST_P(EndedRankTimingTest, ARankMayEndAfterItsPartOfACall) {
  const int first = FirstServed(GetParam());
  const int late = 3 - first;
  InSharedMemory<std::atomic<pid_t>> ended;
  auto told = OnRanks(kRanks, [&](int rank) {
    SetHostFor(GetParam(), rank);
    ProcessGroup& world = Init({.backend = GetParam()});
    if (rank == late) {
      while (ended->load() == 0) std::this_thread::yield();
      auto process = ProcessHandle::Open(ended->load());
      if (process) process->AwaitEnd(TimePoint::max());
      std::this_thread::sleep_for(milliseconds(100));  // in which others notice the loss
    }
    std::string outcome =
        OutcomeOf([&] { LateCalls().at("Broadcast").run(world, 2, GlobalRank{0}, CallOptions()); });
    if (rank == first) ended->store(getpid());
    return outcome;
  });
  EXPECT_THAT(told, Each(std::string("success")));
}

// Shared by a rank that a signal interrupts in a call, and one that leaves meanwhile.
struct Interruption {
  std::atomic<bool> has_begun;
  std::atomic<bool> has_left;
};
Interruption* interruption = nullptr;

// Returns some time after the other rank has left, and after 2 s in any case.
void AwaitTheLeave(int) {
  constexpr timespec kPause{0, 10'000'000};
  constexpr int kPausesAfter = 30;  // in which this rank's other threads notice the leave
  interruption->has_begun = true;
  for (int i = 0; i < 200 && !interruption->has_left; ++i) nanosleep(&kPause, nullptr);
  for (int i = 0; i < kPausesAfter; ++i) nanosleep(&kPause, nullptr);
}

// The thread that waits for data has not run since the data came, and its sender has left.
TEST_P(EndedRankTimingTest, ARankMayLeaveBeforeAnotherHasSeenItsData) {
  InSharedMemory<Interruption> shared;
  auto told = OnRanks(kRanks, [&](int rank) {
    SetHostFor(GetParam(), rank);
    ProcessGroup& world = Init({.backend = GetParam()});
    interruption = &*shared;
    if (rank == 2) {
      signal(SIGALRM, AwaitTheLeave);
      const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
      setitimer(ITIMER_REAL, &soon, nullptr);
    }
    while (rank == 1 && !shared->has_begun) std::this_thread::yield();
    std::string outcome = OutcomeOf([&] { world.Barrier(); });
    Destroy();
    if (rank == 1) shared->has_left = true;
    return outcome;
  });
  EXPECT_THAT(told, Each(std::string("success")));
}

struct LaterFailureTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, LaterFailureTest, testing::Values("tcp", "hierarchical", "gloo"),
                         NameOfBackend);

// A rank has the result of a broadcast and fails in its next call, while others still wait for a
// late one in the first.
TEST_P(LaterFailureTest, DoesNotEndAnEarlierCallOfOthers) {
  const int first = FirstServed(GetParam());
  InSharedMemory<std::atomic<bool>> failed;
  auto told = InWorld(kRanks, GetParam(), [&](ProcessGroup& world) {
    const int rank = world.global_rank();
    auto broadcast = [&] {
      LateCalls().at("Broadcast").run(world, 2, GlobalRank{0}, CallOptions());
    };
    if (rank == 3 - first) {
      while (!*failed) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(100));  // in which others hear of the failure
    }
    std::string outcome = OutcomeOf(broadcast);
    if (rank == first) {
      std::vector<int> sum = {1};
      EXPECT_THROW(world.AllReduce(sum, ReduceOp::kSum, milliseconds(50)), DistError);
      *failed = true;
    }
    return outcome;
  });
  EXPECT_THAT(told, Each(std::string("success")));
}

// Faults of one rank in a row of calls, in which all others time out soon.
enum class Fault { kLate, kRefuses, kDiffers };

// A row of calls in a new group. The ranks make it from the same random numbers.
struct Trial {
  // Without `is_exact`, the late rank is never late by about as much as the others wait.
  Trial(unsigned seed, bool is_exact) {
    std::mt19937 random(seed);
    auto below = [&](unsigned end) { return static_cast<int>(random() % end); };
    const char* names[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Barrier"};
    for (std::string& name : calls) name = names[below(std::size(names))];
    count = below(3) == 0 ? 100'000 : 2;
    fault = static_cast<Fault>(below(4) % 3);  // most are late
    faulty_rank = below(kRanks);
    faulty_call = static_cast<size_t>(below(kCalls));
    timeout_ms = is_exact ? 30 : 1000;
    // About when the others give up: at once on shm, and after they have asked on tcp.
    const int about[] = {0, timeout_ms, timeout_ms, timeout_ms + 200, timeout_ms + 200};
    int late_ms = is_exact ? about[below(std::size(about))] : 2 * timeout_ms * below(2);
    delay = std::chrono::microseconds(1000 * late_ms + below(4000) - 1000);
    for (auto& pause : pauses) pause = std::chrono::microseconds(below(2) * below(400));
  }

  static constexpr size_t kCalls = 4;
  std::array<std::string, kCalls> calls;
  size_t count;
  Fault fault;
  int faulty_rank;
  size_t faulty_call;
  int timeout_ms;  // of the other ranks in that call
  std::chrono::microseconds delay;
  std::array<std::chrono::microseconds, kRanks> pauses;  // before the call with the fault
};

// Makes the calls; returns a letter for each: '+' for a result, '-' for an error.
std::string LettersOf(const Trial& trial) {
  ProcessGroup& group = NewGroup({});
  const int rank = group.global_rank();
  std::string letters;
  for (size_t i = 0; i < Trial::kCalls; ++i) {
    const bool is_faulty = rank == trial.faulty_rank && i == trial.faulty_call;
    size_t count = trial.count;
    std::chrono::milliseconds timeout(10'000);  // for ranks that were preempted
    if (i == trial.faulty_call && !is_faulty) timeout = milliseconds(trial.timeout_ms);
    if (i == trial.faulty_call) {
      std::this_thread::sleep_for(trial.pauses[static_cast<size_t>(rank)]);
    }
    if (is_faulty && trial.fault == Fault::kLate) std::this_thread::sleep_for(trial.delay);
    if (is_faulty && trial.fault == Fault::kRefuses) timeout = milliseconds(-7);
    if (is_faulty && trial.fault == Fault::kDiffers) count += 1;
    auto call = [&] {
      LateCalls()
          .at(trial.calls[i])
          .run(group, count, GlobalRank{0}, CallOptions{.timeout = timeout});
    };
    letters += OutcomeOf(call) == "success" ? '+' : '-';
  }
  return letters;
}

struct LateRankFuzzTest : testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Backends, LateRankFuzzTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

// RANKRUN_LATE_TRIALS and RANKRUN_LATE_SEED let it run for longer, and again. On gloo, a rank that
// comes at the moment of a time-out may have a result that others have not.
TEST_P(LateRankFuzzTest, NoRankHasAResultThatAnotherHasNot) {
  auto number_in = [](const char* variable, unsigned fallback) {
    const char* text = getenv(variable);
    return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : fallback;
  };
  const unsigned trials = number_in("RANKRUN_LATE_TRIALS", 8);
  const unsigned first = number_in("RANKRUN_LATE_SEED", 1);
  auto told = InWorld(kRanks, GetParam(), [&](ProcessGroup& world) {
    std::string letters;
    for (unsigned seed = first; seed < first + trials; ++seed) {
      letters += LettersOf(Trial(seed, GetParam() != std::string("gloo")));
      world.Barrier();
    }
    return letters;
  });
  constexpr size_t kCalls = Trial::kCalls;
  for (size_t i = 0; i < trials; ++i) {
    for (size_t rank = 1; rank < kRanks; ++rank) {
      ASSERT_EQ(told[rank].size(), trials * kCalls) << told[rank];
      EXPECT_EQ(told[rank].substr(i * kCalls, kCalls), told[0].substr(i * kCalls, kCalls))
          << "seed " << first + i << ", ranks " << rank << " and 0";
    }
  }
}

}  // namespace
}  // namespace rankrun::comm
