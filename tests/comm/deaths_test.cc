// A rank that is killed, stopped or late before, amid and after each collective:
// what the others are told, as programs see it, and when.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "base/status_page.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr int kFateful = 20;  // the call in which it happens
constexpr int kCalls = 60;    // where nobody fails
constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = 200'000;  // some milliseconds

using Collective = void (*)(ProcessGroup& world, std::vector<float>& data, std::vector<float>& own);

std::vector<Tensor> PartsOf(std::vector<float>& data) {
  std::vector<Tensor> parts;
  const std::size_t count = data.size() / kRanks;
  for (std::size_t r = 0; r < kRanks; ++r) {
    parts.emplace_back(data.data() + r * count, DType::kFloat32, count);
  }
  return parts;
}

const std::map<std::string, Collective> kCollectives{
    {"AllReduce", [](ProcessGroup& world, auto& data, auto&) { world.AllReduce(data); }},
    {"Reduce", [](ProcessGroup& world, auto& data, auto&) { world.Reduce(data, GlobalRank{0}); }},
    {"Broadcast",
     [](ProcessGroup& world, auto& data, auto&) { world.Broadcast(data, GlobalRank{0}); }},
    {"AllGather",
     [](ProcessGroup& world, auto& data, auto& own) { world.AllGather(PartsOf(data), own); }},
    {"Gather",
     [](ProcessGroup& world, auto& data, auto& own) {
       world.Gather(world.global_rank() == 0 ? PartsOf(data) : std::vector<Tensor>(), own);
     }},
    {"Scatter",
     [](ProcessGroup& world, auto& data, auto& own) {
       const auto parts = PartsOf(data);
       const std::vector<ConstTensor> inputs(parts.begin(), parts.end());
       world.Scatter(own, world.global_rank() == 0 ? inputs : std::vector<ConstTensor>());
     }},
    {"ReduceScatter",
     [](ProcessGroup& world, auto& data, auto& own) { world.ReduceScatterFrom(own, data); }},
    {"AllToAll",
     [](ProcessGroup& world, auto& data, auto&) {
       std::vector<float> output(data.size());
       world.AllToAllSingle(output, data);
     }},
    {"Barrier", [](ProcessGroup& world, auto&, auto&) { world.Barrier(); }},
};

enum class Phase { kBefore, kAmid, kAfter };
constexpr Phase kPhases[] = {Phase::kBefore, Phase::kAmid, Phase::kAfter};

// What the test and its ranks know of each other.
struct Shared {
  std::atomic<int> calls[kRanks];
  std::atomic<int64_t> hit_at;  // of the clock, in ticks
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
  int64_t ms;  // since it happened, or was told
  std::string text;
};

struct DeathsTest : testing::TestWithParam<std::tuple<std::string, const char*>> {
  DeathsTest() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared{};
  }
  ~DeathsTest() override { munmap(shared_, sizeof(Shared)); }

  // What the survivors say.
  std::vector<Told> Survivors(const Fate& fate) {
    new (shared_) Shared{};
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
      if (r == kVictim) continue;
      std::istringstream text(ranks[static_cast<std::size_t>(r)]->Text());
      Told one{.ms = -1, .text = ""};
      text >> one.ms >> std::ws;
      std::getline(text, one.text);
      told.push_back(one);
    }
    return told;
  }

 private:
  static void UsePage(const StatusPage& page) {
    setenv("RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str(), 1);
    const std::string agent = std::to_string(page.header().agent_pid);
    setenv("RANKRUN_STATUS_PATH", ("/proc/" + agent + "/fd/" + std::to_string(page.fd())).c_str(),
           1);
  }

  // Calls until an error, or so often that all should have gone well.
  std::string Rank(const Fate& fate, int rank) {
    std::vector<float> data(fate.count * kRanks), own(fate.count);
    const bool ends = fate.signal != SIGSTOP || fate.resumes == milliseconds(0);
    const std::string error = ErrorOf(
        [&] {
          ProcessGroup& world =
              Init({.timeout = std::chrono::seconds(60), .backend = std::get<1>(GetParam())});
          ProcessGroup& group = NewGroup({.timeout = fate.timeout});
          world.Barrier();
          for (int call = 1; ends || call <= kCalls; ++call) {
            if (rank == kVictim && call == kFateful) HitMyself(fate, Phase::kBefore);
            kCollectives.at(std::get<0>(GetParam()))(group, data, own);
            if (rank == kVictim && call == kFateful) HitMyself(fate, Phase::kAfter);
            shared_->calls[rank] = call;
          }
        },
        std::chrono::hours(1));
    const auto ms = std::chrono::duration_cast<milliseconds>(Duration(Ticks() - shared_->hit_at));
    return std::to_string(ms.count()) + " " + error;
  }

  void HitMyself(const Fate& fate, Phase phase) {
    if (phase != fate.phase) return;
    shared_->hit_at = Ticks();
    raise(fate.signal);
  }

  void Strike(const Fate& fate, ChildProcess& victim) {
    if (fate.phase == Phase::kAmid) {
      const TimePoint limit = MonotonicClock().Now() + std::chrono::seconds(60);
      while (shared_->calls[0] < kFateful || shared_->calls[kVictim] < kFateful) {
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
      std::this_thread::sleep_for(fate.resumes);
      victim.Signal(SIGCONT);
    }
  }

  void TellDeath() {
    shared_->hit_at = Ticks();
    for (StatusPage& page : pages_) page.TellDeath("rank 1 was killed by SIGKILL");
  }

  Shared* shared_;
  std::vector<StatusPage> pages_;
};

TEST_P(DeathsTest, AKilledRankIsNamedToAllOthersAtOnce) {
  for (const Phase phase : kPhases) {
    for (const std::size_t count : {kSmall, kLarge}) {
      for (const Told& told : Survivors({.phase = phase, .count = count})) {
        EXPECT_THAT(told.text, StartsWith("DistNetworkError: "));
        EXPECT_THAT(told.text, HasSubstr("rank 1"));
        EXPECT_LT(told.ms, 2000) << told.text;
      }
    }
  }
}

// kPromptMs; more than half of them, as the machine may be loaded.
TEST_P(DeathsTest, TheWordOfTheAgentHasRankAndSignalAndComesAtOnce) {
  std::vector<int64_t> times;
  for (const Phase phase : kPhases) {
    for (const std::size_t count : {kSmall, kLarge}) {
      for (const Told& told : Survivors({.phase = phase, .count = count, .told = true})) {
        EXPECT_THAT(told.text, StartsWith("DistNetworkError: "));
        EXPECT_THAT(told.text, HasSubstr("rank 1 was killed by SIGKILL"));
        EXPECT_LT(told.ms, 1000) << told.text;
        times.push_back(told.ms);
      }
    }
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], kPromptMs);
}

TEST_P(DeathsTest, AStoppedRankIsNamedWhenTheTimeIsOver) {
  for (const Phase phase : kPhases) {
    const auto survivors = Survivors(
        {.phase = phase, .count = kLarge, .signal = SIGSTOP, .timeout = milliseconds(300)});
    int timed_out = 0;
    for (const Told& told : survivors) {
      timed_out += told.text.starts_with("DistTimeoutError: ") ? 1 : 0;
      EXPECT_THAT(told.text, HasSubstr("rank 1"));
      EXPECT_GE(told.ms, 250) << told.text;
      EXPECT_LT(told.ms, 3000) << told.text;
    }
    EXPECT_GT(timed_out, 0) << "the other may have lost the first";
  }
}

TEST_P(DeathsTest, ALateRankIsWaitedFor) {
  for (const Phase phase : kPhases) {
    const auto survivors = Survivors(
        {.phase = phase, .count = kLarge, .signal = SIGSTOP, .resumes = milliseconds(100)});
    for (const Told& told : survivors) EXPECT_EQ(told.text, "no error");
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, collective] : kCollectives) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Collectives, DeathsTest,
                         testing::Combine(testing::ValuesIn(Names()),
                                          testing::Values("shm", "gloo")),
                         [](const auto& one) {
                           return std::get<0>(one.param) + "_" + std::get<1>(one.param);
                         });

}  // namespace
}  // namespace rankrun::comm
