#include "agent/machine/binding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rankrun::agent {
namespace {

using Texts = std::vector<std::string>;

struct Machine {
  int packages = 2;
  int nodes_each = 1;   // NUMA nodes in a package
  int caches_each = 1;  // last-level caches in a node
  int cores_each = 4;   // cores under a cache
  int threads = 1;      // hardware threads of a core
};

// Numbers the CPUs as Linux does: first all first threads, then all second
// ones.
Topology Build(const Machine& machine) {
  Topology topology;
  int caches = machine.packages * machine.nodes_each * machine.caches_each;
  int cores = caches * machine.cores_each;
  for (int core = 0; core < cores; ++core) {
    int cache = core / machine.cores_each;
    int node = cache / machine.caches_each;
    Core described{.cpus = {},
                   .numa_node = node,
                   .package = node / machine.nodes_each,
                   .last_cache = 100 + cache};
    for (int thread = 0; thread < machine.threads; ++thread) {
      described.cpus.push_back(core + thread * cores);
    }
    topology.cores.push_back(described);
  }
  return topology;
}

Texts Plan(const Topology& topology, Binding binding, int workers,
           const std::vector<int>& gpu_nodes = {}) {
  auto plan = PlanBinding(topology, binding, workers, gpu_nodes);
  if (!plan) return {plan.error().message};
  Texts texts;
  for (const Cpus& cpus : *plan) texts.push_back(FormatCpus(cpus));
  return texts;
}

const Topology kTwoNodes = Build({});                  // 2 x 4 cores
const Topology kThreads = Build({.threads = 2});       // 2 x 4 cores, 16 threads
const Topology kFourNodes = Build({.nodes_each = 2});  // 2 x 2 x 4 cores
const Topology kCaches = Build({.caches_each = 2});    // 2 x 2 x 4 cores
const std::vector<int> kEightGpus = {0, 0, 0, 0, 1, 1, 1, 1};

TEST(BindingTest, CoresAreDividedEvenlyTheRestGoesToTheFirst) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 1), Texts({"0-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 2), Texts({"0-3", "4-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 3), Texts({"0-2", "3-5", "6-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 8), Texts({"0", "1", "2", "3", "4", "5", "6", "7"}));
}

TEST(BindingTest, ThreadsOfACoreStayTogether) {
  EXPECT_EQ(Plan(kThreads, Binding::kCore, 4),
            Texts({"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}));
  EXPECT_EQ(Plan(kThreads, Binding::kNuma, 2), Texts({"0-3,8-11", "4-7,12-15"}));
}

TEST(BindingTest, FewerCoresThanWorkersAreCounted) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 9),
            Texts({"binding by core: 8 cores for 9 workers, want at least one for each"}));
  EXPECT_EQ(Plan(Build({.packages = 1, .cores_each = 1}), Binding::kCore, 2),
            Texts({"binding by core: 1 core for 2 workers, want at least one for each"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kExclusive, 9),
            Texts({"binding by exclusive: NUMA node 0 has 4 cores for 5 workers, want at least "
                   "one for each"}));
  EXPECT_EQ(Plan(Build({.cores_each = 2}), Binding::kExclusive, 2, {1, 1, 1}),
            Texts({"binding by exclusive: NUMA node 1 has 2 cores for 3 GPUs, want at least one "
                   "for each"}));
}

TEST(BindingTest, WithoutGpusNeighboursShareANodeAPackageACache) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kNuma, 4), Texts({"0-3", "0-3", "4-7", "4-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kNuma, 3), Texts({"0-3", "0-3", "4-7"}));
  EXPECT_EQ(Plan(kFourNodes, Binding::kNuma, 2), Texts({"0-3", "8-11"})) << "spread out";
  EXPECT_EQ(Plan(kFourNodes, Binding::kSocket, 4), Texts({"0-7", "0-7", "8-15", "8-15"}));
  EXPECT_EQ(Plan(kCaches, Binding::kCoreComplex, 4), Texts({"0-3", "4-7", "8-11", "12-15"}));
  EXPECT_EQ(Plan(kCaches, Binding::kCoreComplex, 2), Texts({"0-3", "8-11"}));
}

TEST(BindingTest, WithoutGpusAnExclusiveShareIsOfTheNode) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kExclusive, 3), Texts({"0-1", "2-3", "4-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kExclusive, 6), Texts({"0-1", "2", "3", "4-5", "6", "7"}));
}

TEST(BindingTest, AWorkerIsNearItsGpu) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kNuma, 4, {1, 0, 1, 0}), Texts({"4-7", "0-3", "4-7", "0-3"}));
  EXPECT_EQ(Plan(kFourNodes, Binding::kNuma, 2, {3, 3, 0, 0}), Texts({"12-15", "12-15"}));
  EXPECT_EQ(Plan(kFourNodes, Binding::kSocket, 2, {3, 0}), Texts({"8-15", "0-7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kCore, 4, {1, 1, 0, 0}), Texts({"4-5", "6-7", "0-1", "2-3"}));
}

// Source: torchrun's exclusive: all GPUs of the node share its cores.
TEST(BindingTest, AnExclusiveShareIsThatOfTheGpu) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kExclusive, 8, kEightGpus),
            Texts({"0", "1", "2", "3", "4", "5", "6", "7"}));
  EXPECT_EQ(Plan(kTwoNodes, Binding::kExclusive, 2, {0, 0, 0}), Texts({"0-1", "2"}));
}

// Source: torchrun's core-complex: the largest first, one GPU after the other.
TEST(BindingTest, CoreComplexesAreGivenInTurnTheLargestFirst) {
  EXPECT_EQ(Plan(kCaches, Binding::kCoreComplex, 8, kEightGpus),
            Texts({"0-3", "4-7", "0-3", "4-7", "8-11", "12-15", "8-11", "12-15"}));
  Topology partly = Within(kCaches, {0, 1, 4, 5, 6, 8});
  EXPECT_EQ(Plan(partly, Binding::kCoreComplex, 2, {0, 0}), Texts({"4-6", "0-1"}));
}

TEST(BindingTest, WithoutCachesAComplexIsTheNode) {
  Topology topology = kTwoNodes;
  for (Core& core : topology.cores) core.last_cache = -1;
  EXPECT_EQ(Plan(topology, Binding::kCoreComplex, 2), Texts({"0-3", "4-7"}));
}

TEST(BindingTest, FewerGpusThanWorkersAreIgnored) {
  EXPECT_EQ(Plan(kTwoNodes, Binding::kNuma, 2, {1}), Texts({"0-3", "4-7"}));
}

TEST(BindingTest, AGpuWhereWeMayUseNoCoreIsNamed) {
  Topology first = Within(kTwoNodes, {0, 1, 2, 3});
  EXPECT_EQ(Plan(first, Binding::kNuma, 2, {0, 1}),
            Texts({"binding by numa: GPU 1 is at NUMA node 1, of which no core may be used"}));
  EXPECT_EQ(Plan(first, Binding::kNuma, 1, {0, 1}), Texts({"0-3"})) << "no worker uses GPU 1";
  EXPECT_EQ(Plan({}, Binding::kCore, 1),
            Texts({"binding by core: no core of this machine may be used"}));
}

TEST(BindingTest, OnlyAllowedCpusAreUsed) {
  Topology some = Within(kThreads, {1, 2, 3, 9, 12});
  EXPECT_EQ(some.cores.size(), 4u);
  EXPECT_EQ(Plan(some, Binding::kNuma, 2), Texts({"1-3,9", "12"}));
  EXPECT_EQ(Plan(some, Binding::kCore, 2), Texts({"1-2,9", "3,12"}));
}

// Checks the guarantees of every plan.
void CheckPlan(const Topology& topology, Binding binding, int workers, int gpus) {
  std::vector<int> gpu_nodes;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    size_t core = static_cast<size_t>(7 * gpu) % topology.cores.size();
    gpu_nodes.push_back(topology.cores[core].numa_node);
  }
  auto plan = PlanBinding(topology, binding, workers, gpu_nodes);
  if (!plan) {
    EXPECT_EQ(binding, Binding::kExclusive) << plan.error().message;
    return;
  }
  ASSERT_EQ(plan->size(), static_cast<size_t>(workers));
  std::multiset<int> used;
  for (const Cpus& cpus : *plan) {
    EXPECT_FALSE(cpus.empty());
    EXPECT_TRUE(std::ranges::is_sorted(cpus));
    used.insert(cpus.begin(), cpus.end());
    Cpus whole;
    for (const Core& core : topology.cores) {
      if (std::ranges::binary_search(cpus, core.cpus[0])) {
        whole.insert(whole.end(), core.cpus.begin(), core.cpus.end());
      }
    }
    std::ranges::sort(whole);
    EXPECT_EQ(whole, cpus) << "half a core, or none of this machine";
  }
  bool own = binding == Binding::kCore || binding == Binding::kExclusive;
  std::set<int> once(used.begin(), used.end());
  EXPECT_TRUE(!own || once.size() == used.size()) << "a CPU twice";
}

void CheckPlans(const Topology& topology) {
  for (Binding binding : {Binding::kCore, Binding::kNuma, Binding::kSocket, Binding::kExclusive,
                          Binding::kCoreComplex}) {
    for (int workers = 1; workers <= 4; ++workers) {
      for (int gpus : {0, workers, workers + 2}) CheckPlan(topology, binding, workers, gpus);
    }
  }
}

TEST(BindingTest, EveryPlanIsInsideTheMachineAndKeepsCoresWhole) {
  for (int packages : {1, 2, 3}) {
    for (int nodes : {1, 2}) {
      for (int caches : {1, 3}) {
        for (int threads : {1, 2}) CheckPlans(Build({packages, nodes, caches, 4, threads}));
      }
    }
  }
}

TEST(BindingTest, SharedCoresAreDividedAmongTheirUsers) {
  auto each = [](const Topology& topology, Binding binding, int workers) {
    return CoresEach(topology, *PlanBinding(topology, binding, workers, {}));
  };
  EXPECT_EQ(each(kThreads, Binding::kCore, 3), std::vector<int>({3, 3, 2}));
  EXPECT_EQ(each(kTwoNodes, Binding::kNuma, 3), std::vector<int>({2, 2, 4}));
  EXPECT_EQ(each(kTwoNodes, Binding::kSocket, 16), std::vector<int>(16, 1));
}

TEST(BindingTest, TheTableNamesWhatEachWorkerGets) {
  auto plan = PlanBinding(kThreads, Binding::kNuma, 2, {1, 0});
  EXPECT_EQ(BindingTable(kThreads, *plan, {"4", "GPU-8f2a"}),
            "local rank  CPUs       cores  NUMA node  package  GPU\n"
            "0           4-7,12-15  4      1          1        4\n"
            "1           0-3,8-11   4      0          0        GPU-8f2a\n");
  plan = PlanBinding(kFourNodes, Binding::kSocket, 1, {});
  EXPECT_EQ(BindingTable(kFourNodes, *plan, {}),
            "local rank  CPUs  cores  NUMA node  package  GPU\n"
            "0           0-7   8      0-1        0        -\n");
}

TEST(BindingTest, NamesAreThoseOfTheFlags) {
  EXPECT_EQ(BindingName(Binding::kNone), "none");
  EXPECT_EQ(BindingName(Binding::kCoreComplex), "core-complex");
}

}  // namespace
}  // namespace rankrun::agent
