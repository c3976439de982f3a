// A rank that is killed, stopped or late before, amid and after each collective:
// what the others are told, as programs see it, and when.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "base/status_page.h"
#include "tests/comm/death_calls.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = 200'000;  // some milliseconds
// Calls that go well take less, on a loaded machine, too (150 ms were seen): who
// times out in one of these has others to name.
constexpr milliseconds kShort{1'000};
// How long a rank that loses another waits for the agent's word (docs/comm.md).
constexpr milliseconds kForTheWord{100};

DeathCall CallOf(const std::string& name) {
  const auto found = CallsOfTheBackend().find(name);
  return found != CallsOfTheBackend().end() ? found->second : CallsOfTheStore().at(name);
}

enum class Phase { kBefore, kAmid, kAfter };
constexpr Phase kPhases[] = {Phase::kBefore, Phase::kAmid, Phase::kAfter};
// Where each takes its time: after a call is before the next.
constexpr Phase kFewPhases[] = {Phase::kBefore, Phase::kAmid};

// What the test and its ranks know of each other.
struct Shared {
  std::atomic<int> calls[kRanks];
  std::atomic<int64_t> hit_at;  // of the clock, in ticks
  std::atomic<bool> stopped;    // the victim, amid its calls
  std::atomic<int> last_call;   // 0: not known yet
};

int64_t Ticks() { return MonotonicClock().Now().time_since_epoch().count(); }

// What happens to the victim.
struct Fate {
  Phase phase;
  std::size_t count;
  int signal = SIGKILL;
  milliseconds timeout = std::chrono::seconds(60);
  bool told = false;        // by the agent, on the status pages
  milliseconds resumes{0};  // after that time, if it is stopped; 0: never
};

struct Told {
  int64_t ms;       // since it happened, or was told
  int64_t call_ms;  // since this rank began the call
  std::string text;
};

struct DeathsTest : testing::TestWithParam<std::tuple<std::string, const char*>> {
  // What the survivors say: all, if the victim goes on.
  std::vector<Told> Survivors(const Fate& fate) {
    new (&*shared_) Shared{};
    pages_.clear();
    for (int r = 0; r < kRanks; ++r) pages_.push_back(*StatusPage::Create());
    ServerProcess server;
    std::vector<std::unique_ptr<ChildProcess>> ranks;
    for (int r = 0; r < kRanks; ++r) {
      ranks.push_back(std::make_unique<ChildProcess>([&, r] {
        SetPlace(r, kRanks, server.port());
        if (fate.told) UsePage(pages_[static_cast<std::size_t>(r)]);
        return Rank(fate, r);
      }));
    }
    Strike(fate, *ranks[kVictim]);
    std::vector<Told> told;
    for (int r = 0; r < kRanks; ++r) {
      if (r == kVictim && fate.resumes == milliseconds(0)) continue;
      std::istringstream text(ranks[static_cast<std::size_t>(r)]->Text());
      Told one{.ms = -1, .call_ms = -1, .text = ""};
      text >> one.ms >> one.call_ms >> std::ws;
      std::getline(text, one.text);
      told.push_back(one);
    }
    return told;
  }

  int fateful_ = 20;               // the call in which it happens
  int calls_ = 40;                 // where nobody fails
  milliseconds timeout_ = kShort;  // where a rank is stopped

  bool told_in_time_ = true;  // the death, by the agent, if at all

  void ExpectTheWord();
  void ExpectToBeNamed();
  void ExpectToBeAwaited();

 private:
  static void UsePage(const StatusPage& page) {
    setenv("RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str(), 1);
    const std::string agent = std::to_string(page.header().agent_pid);
    setenv("RANKRUN_STATUS_PATH", ("/proc/" + agent + "/fd/" + std::to_string(page.fd())).c_str(),
           1);
  }

  // Calls until an error, or so often that all should have gone well.
  std::string Rank(const Fate& fate, int rank) {
    const DeathCall make_call = CallOf(std::get<0>(GetParam()));
    CallData my(rank, fate.count, fate.timeout);
    const bool ends = fate.signal != SIGSTOP || fate.resumes == milliseconds(0);
    int64_t began = 0;
    std::string wrong;
    const std::string error = ErrorOf(
        [&] {
          ProcessGroup& world =
              Init({.timeout = std::chrono::seconds(60), .backend = std::get<1>(GetParam())});
          ProcessGroup& group = NewGroup({.timeout = fate.timeout});
          world.Barrier();
          for (int call = 1; ends || GoesOn(fate, rank, call); ++call) {
            if (rank == kVictim && call == fateful_) HitMyself(fate, Phase::kBefore);
            my.number = static_cast<std::size_t>(call);
            began = Ticks();
            if (!make_call(group, my)) wrong += "wrong in call " + std::to_string(call) + ", ";
            if (rank == kVictim && call == fateful_) HitMyself(fate, Phase::kAfter);
            shared_->calls[rank] = call;
          }
          world.Barrier();  // whoever ends first may have sent what is not yet received
        },
        std::chrono::hours(1));
    return MsSince(shared_->hit_at) + " " + MsSince(began) + " " + wrong + error;
  }

  static std::string MsSince(int64_t ticks) {
    return std::to_string(
        std::chrono::duration_cast<milliseconds>(Duration(Ticks() - ticks)).count());
  }

  // Until some calls after the victim was stopped, which takes as long as it
  // takes. Rank 0 says when; nobody is that many calls ahead of it.
  bool GoesOn(const Fate& fate, int rank, int call) {
    if (fate.phase != Phase::kAmid) return call <= calls_;
    if (rank == 0 && shared_->stopped && shared_->last_call == 0) {
      shared_->last_call = call + calls_;
    }
    return shared_->last_call == 0 || call <= shared_->last_call;
  }

  void HitMyself(const Fate& fate, Phase phase) {
    if (phase != fate.phase) return;
    shared_->hit_at = Ticks();
    raise(fate.signal);
  }

  void Strike(const Fate& fate, ChildProcess& victim) {
    if (fate.phase == Phase::kAmid) {
      const TimePoint limit = MonotonicClock().Now() + std::chrono::seconds(60);
      while (shared_->calls[0] < fateful_ || shared_->calls[kVictim] < fateful_) {
        if (MonotonicClock().Now() > limit) return ADD_FAILURE() << "nobody calls";
        std::this_thread::yield();
      }
      shared_->hit_at = Ticks();
      victim.Signal(fate.signal);
    }
    const auto pid = static_cast<id_t>(victim.pid());
    siginfo_t info;
    if (fate.signal == SIGKILL) {
      EXPECT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
      if (fate.told) TellDeath();
    } else if (fate.resumes > milliseconds(0)) {
      EXPECT_EQ(waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT), 0);
      shared_->stopped = true;
      std::this_thread::sleep_for(fate.resumes);
      victim.Signal(SIGCONT);
    }
  }

  void TellDeath() {
    const Duration died_at(shared_->hit_at.exchange(Ticks()));
    for (StatusPage& page : pages_) page.TellDeath("rank 1 was killed by SIGKILL");
    told_in_time_ = Duration(Ticks()) - died_at < kForTheWord;
  }

  const InSharedMemory<Shared> shared_;
  std::vector<StatusPage> pages_;
};

// More than half of the times: the machine may be loaded.
void ExpectMostWithin(int64_t limit_ms, std::vector<int64_t> times) {
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], limit_ms);
}

TEST_P(DeathsTest, AKilledRankIsNamedToAllOthersAtOnce) {
  std::vector<int64_t> times;
  for (const Phase phase : kPhases) {
    for (const std::size_t count : {kSmall, kLarge}) {
      for (const Told& told : Survivors({.phase = phase, .count = count})) {
        EXPECT_THAT(told.text, StartsWith("DistNetworkError: "));
        EXPECT_THAT(told.text, HasSubstr("rank 1"));
        EXPECT_LT(told.ms, kLoadedMs) << told.text;
        times.push_back(told.ms);
      }
    }
  }
  ExpectMostWithin(1000, times);
}

TEST_P(DeathsTest, TheWordOfTheAgentHasRankAndSignalAndComesAtOnce) { ExpectTheWord(); }
TEST_P(DeathsTest, AStoppedRankIsNamedWhenTheTimeIsOver) { ExpectToBeNamed(); }
TEST_P(DeathsTest, ALateRankIsWaitedFor) { ExpectToBeAwaited(); }

// Nobody but the agent tells of a death; and a call takes long.
struct StoreDeathsTest : DeathsTest {
  StoreDeathsTest() {
    fateful_ = 5;
    calls_ = 10;
    timeout_ = 5 * kShort;
  }
};
TEST_P(StoreDeathsTest, TheWordOfTheAgentHasRankAndSignalAndComesAtOnce) { ExpectTheWord(); }
TEST_P(StoreDeathsTest, AStoppedRankIsNamedWhenTheTimeIsOver) { ExpectToBeNamed(); }
TEST_P(StoreDeathsTest, ALateRankIsWaitedFor) { ExpectToBeAwaited(); }

void DeathsTest::ExpectTheWord() {
  std::vector<int64_t> times;
  for (const Phase phase : kPhases) {
    for (const std::size_t count : {kSmall, kLarge}) {
      for (const Told& told : Survivors({.phase = phase, .count = count, .told = true})) {
        EXPECT_THAT(told.text, StartsWith("DistNetworkError: "));
        EXPECT_THAT(told.text,
                    HasSubstr(told_in_time_ ? "rank 1 was killed by SIGKILL" : "rank 1"));
        EXPECT_LT(told.ms, kLoadedMs) << told.text;
        times.push_back(told.ms);
      }
    }
  }
  ExpectMostWithin(kPromptMs, times);
}

void DeathsTest::ExpectToBeNamed() {
  for (const Phase phase : kFewPhases) {
    int64_t longest_ms = 0;
    int timed_out = 0;
    for (const Told& told :
         Survivors({.phase = phase, .count = kLarge, .signal = SIGSTOP, .timeout = timeout_})) {
      // Stopped while it comes to a barrier of the store, it holds up that and the next.
      const int64_t latest_ms = kLoadedMs + 2 * timeout_.count();
      timed_out += told.text.starts_with("DistTimeoutError: ") ? 1 : 0;
      EXPECT_THAT(told.text, HasSubstr("rank 1"));
      EXPECT_LT(told.ms, latest_ms) << told.text;
      longest_ms = std::max(longest_ms, told.call_ms);
    }
    EXPECT_GT(timed_out, 0) << "the other may have lost the first";
    EXPECT_GE(longest_ms, timeout_.count()) << "the other may be told by the first";
  }
}

void DeathsTest::ExpectToBeAwaited() {
  for (const Phase phase : kFewPhases) {
    const auto all = Survivors(
        {.phase = phase, .count = kLarge, .signal = SIGSTOP, .resumes = milliseconds(100)});
    for (const Told& told : all) EXPECT_EQ(told.text, "no error");
  }
}

auto NamesIn(const DeathCalls& calls) {
  std::vector<std::string> names;
  for (const auto& [name, call] : calls) names.push_back(name);
  return testing::Combine(testing::ValuesIn(names), testing::Values("shm", "gloo"));
}

std::string NameOf(const testing::TestParamInfo<DeathsTest::ParamType>& one) {
  return std::get<0>(one.param) + "_" + std::get<1>(one.param);
}

INSTANTIATE_TEST_SUITE_P(Collectives, DeathsTest, NamesIn(CallsOfTheBackend()), NameOf);
INSTANTIATE_TEST_SUITE_P(Collectives, StoreDeathsTest, NamesIn(CallsOfTheStore()), NameOf);

}  // namespace
}  // namespace rankrun::comm
