#include "tests/cluster/cluster.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "agent/job/exit_codes.h"
#include "base/log.h"

// The sockets, timers and codecs between the pure cores of a job of several nodes; tests/sim has
// the cores themselves.

namespace rankrun::cluster {
namespace {

using std::chrono::seconds;

#ifdef RANKRUN_SANITIZED
constexpr int kRuns = 6;
#else
constexpr int kRuns = 60;
#endif

// Runs seeds that no run had before, or RANKRUN_SIM_SEED and those after it.
class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    signal(SIGPIPE, SIG_IGN);  // as rankrun does
    SetLogSink([](std::string_view) {});
  }
  ~ClusterTest() override { SetLogSink({}); }

  template <typename Check>
  void ForSeeds(Options options, Check check) {
    const char* text = std::getenv("RANKRUN_SIM_SEED");
    options.is_traced = std::getenv("RANKRUN_CLUSTER_TRACE") != nullptr;
    const uint64_t first = text != nullptr ? std::strtoull(text, nullptr, 10) : Microseconds();
    const int runs = options.is_traced ? 1 : kRuns;
    for (options.seed = first; options.seed < first + static_cast<uint64_t>(runs); ++options.seed) {
      options.nodes = 2 + static_cast<int>(options.seed % 4);
      Cluster cluster(options);
      EXPECT_EQ(cluster.Run(), "");
      check(cluster);
      ASSERT_FALSE(HasFailure()) << "repeat: RANKRUN_SIM_SEED=" << options.seed;
    }
  }

  static void ExpectAllEndWith(Cluster& cluster, std::set<int> codes) {
    for (size_t i = 0; i < cluster.nodes().size(); ++i) {
      if (cluster.nodes()[i]->is_lost()) continue;
      const auto found = cluster.checker().exit_codes().find(static_cast<int>(i));
      ASSERT_NE(found, cluster.checker().exit_codes().end()) << "n" << i << " has not ended";
      EXPECT_TRUE(codes.contains(found->second)) << "n" << i << " ends with " << found->second;
    }
  }

 private:
  static uint64_t Microseconds() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(now / std::chrono::microseconds(1));
  }
};

TEST_F(ClusterTest, WithoutFaultsAllSucceedInOneAttempt) {
  ForSeeds({.faults = Faults::kNone}, [](Cluster& cluster) {
    ExpectAllEndWith(cluster, {0});
    EXPECT_EQ(cluster.checker().attempts(), 1U);
  });
}

TEST_F(ClusterTest, ABrokenConnectionChangesNothing) {
  ForSeeds({.faults = Faults::kBreaks}, [](Cluster& cluster) {
    ExpectAllEndWith(cluster, {0});
    EXPECT_EQ(cluster.checker().attempts(), 1U);
  });
}

TEST_F(ClusterTest, EachFailureIsReportedOnEachNodeWithItsCulprit) {
  ForSeeds({.max_restarts = 2, .faults = Faults::kWorkers}, [](Cluster& cluster) {
    Checker& checker = cluster.checker();
    const bool fails = checker.culprits().size() > 2;
    ExpectAllEndWith(cluster, {fails ? Workers::kFailureCode : 0});
    EXPECT_EQ(checker.attempts(), checker.culprits().size() + (fails ? 0 : 1));
    for (size_t i = 0; i < cluster.nodes().size(); ++i) {
      for (const auto& [attempt, rank] : checker.culprits()) {
        EXPECT_TRUE(checker.HasTold(static_cast<int>(i), attempt))
            << "n" << i << " shows no report on attempt " << attempt;
      }
    }
  });
}

TEST_F(ClusterTest, AnAgentThatDiesCostsARestart) {
  for (int most : {0, 2, 5}) {
    ForSeeds({.max_restarts = most, .faults = Faults::kAgents}, [most](Cluster& cluster) {
      const int deaths = cluster.faults();
      if (deaths <= most) ExpectAllEndWith(cluster, {0});
      if (deaths > most) ExpectAllEndWith(cluster, {0, agent::kExitInternalError});
      EXPECT_LE(cluster.checker().attempts(), static_cast<size_t>(1 + std::min(deaths, most)));
    });
  }
}

TEST_F(ClusterTest, ALostMachineCostsNoRestartAndLittleTime) {
  ForSeeds({.max_restarts = 0, .faults = Faults::kMachines}, [](Cluster& cluster) {
    ExpectAllEndWith(cluster, {0});
    EXPECT_LT(cluster.checker().longest_recovery(), seconds(1)) << "nobody dialled back";
  });
}

TEST_F(ClusterTest, AMachineThatStandsStillDoesNotEndTheJobOfTheOthers) {
  ForSeeds({.max_restarts = 5, .faults = Faults::kFreezes}, [](Cluster& cluster) {
    const bool is_coordinators = cluster.nodes()[0]->has_stood_still();
    for (size_t i = 0; i < cluster.nodes().size(); ++i) {
      std::set<int> codes = {0};
      const bool may_be_lost = is_coordinators || cluster.nodes()[i]->has_stood_still();
      if (may_be_lost) codes.insert({agent::kExitLostCoordinator, agent::kExitNoRendezvous});
      EXPECT_TRUE(codes.contains(cluster.checker().exit_codes().at(static_cast<int>(i))))
          << "n" << i;
    }
  });
}

TEST_F(ClusterTest, WhateverGoesWrongTheJobEnds) {
  ForSeeds({.faults = Faults::kAll}, [](Cluster&) {});
}

}  // namespace
}  // namespace rankrun::cluster
