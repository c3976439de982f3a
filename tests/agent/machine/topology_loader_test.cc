#include "agent/machine/topology_loader.h"

#include <gmock/gmock.h>

#include "agent/machine/machine_share.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Loads the topology of a machine that hwloc simulates.
Topology Load(const char* synthetic) {
  test::ScopedVariable variable("HWLOC_SYNTHETIC", synthetic);
  auto topology = LoadTopology(TopologyPluginFolders());
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? *topology : Topology{};
}

TEST(TopologyLoaderTest, CoresComeWithAllThatTheyShare) {
  Topology topology = Load("pack:2 numa:2 l3:2 core:2 pu:2");
  ASSERT_EQ(topology.cores.size(), 16u);
  EXPECT_EQ(topology.cores[0].cpus, Cpus({0, 1}));
  EXPECT_EQ(topology.cores[15].cpus, Cpus({30, 31}));
  for (size_t i = 0; i < topology.cores.size(); ++i) {
    EXPECT_EQ(topology.cores[i].package, static_cast<int>(i / 8));
    EXPECT_EQ(topology.cores[i].numa_node, static_cast<int>(i / 4));
  }
  EXPECT_EQ(topology.cores[0].last_cache, topology.cores[1].last_cache);
  EXPECT_NE(topology.cores[1].last_cache, topology.cores[2].last_cache);
}

TEST(TopologyLoaderTest, AMachineMayHaveNoCachesAndNoCores) {
  Topology topology = Load("numa:2 pu:3");
  ASSERT_EQ(topology.cores.size(), 6u);
  EXPECT_EQ(topology.cores[4], (Core{.cpus = {4}, .numa_node = 1, .package = 0, .last_cache = -1}));
}

TEST(TopologyLoaderTest, ThisMachineHasAllCpusThatWeMayUse) {
  Topology topology = Load(nullptr);
  Cpus allowed = *AllowedCpus();
  Cpus seen;
  for (const Core& core : Within(topology, allowed).cores) {
    seen.insert(seen.end(), core.cpus.begin(), core.cpus.end());
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, allowed);
}

TEST(TopologyLoaderTest, AMissingPlugInIsReportedWithTheSearchedFolders) {
  auto topology = LoadTopology({"/no/a", "/no/b"});
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(topology.error().message,
            "there is no librankrun_topology.so; tried /no/a/librankrun_topology.so, "
            "/no/b/librankrun_topology.so");
}

TEST(TopologyLoaderTest, APlugInThatCannotBeLoadedNamesThePackage) {
  test::TempFolder folder;
  std::string file = folder.Write("librankrun_topology.so", "no library");
  auto topology = LoadTopology({folder.path()});
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(topology.error().message, AllOf(StartsWith("load " + file + ": "),
                                              HasSubstr("(is the package libhwloc15 installed?)")));
}

struct MachineShareTest : testing::Test {
  JobSpec spec;
  int cores = static_cast<int>(AllowedCpus()->size());
};

TEST_F(MachineShareTest, UnboundWorkersShareTheCoresButHaveOneEach) {
  spec.workers = 1;
  auto share = ShareMachine(spec);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->threads, std::vector<int>({cores}));
  EXPECT_EQ(CpusOf(*share, 0), Cpus());
  spec.workers = 2 * cores + 1;
  share = ShareMachine(spec);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->threads, std::vector<int>(static_cast<size_t>(spec.workers), 1));
}

TEST_F(MachineShareTest, BoundWorkersStayInsideTheAllowedCpus) {
  test::ScopedVariable synthetic("HWLOC_SYNTHETIC", "numa:1 core:4096 pu:1");
  spec.binding = Binding::kNuma;
  spec.workers = 2;
  spec.gpus.emplace();
  auto share = ShareMachine(spec);
  ASSERT_TRUE(share) << share.error().message;
  EXPECT_EQ(CpusOf(*share, 0), *AllowedCpus());
  EXPECT_EQ(share->threads, std::vector<int>(2, std::max(1, cores / 2)));
}

TEST_F(MachineShareTest, TheLimitOfAContainerIsSharedIfItIsLower) {
  test::ScopedVariable synthetic("HWLOC_SYNTHETIC", "numa:1 core:4096 pu:1");
  spec.workers = 2;
  spec.gpus.emplace();
  for (Binding binding : {Binding::kNone, Binding::kNuma}) {
    spec.binding = binding;
    spec.cpu_limit = cores + 1;
    auto share = ShareMachine(spec);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_FALSE(share->is_limited);
    spec.cpu_limit = cores - 1;
    share = ShareMachine(spec);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_TRUE(share->is_limited);
    EXPECT_EQ(share->cores, cores - 1);
    EXPECT_EQ(share->threads, std::vector<int>(2, std::max(1, (cores - 1) / 2)));
  }
}

TEST_F(MachineShareTest, FewerCoresThanWorkersAreCounted) {
  spec.binding = Binding::kCore;
  spec.workers = 5000;
  spec.gpus.emplace();
  auto share = ShareMachine(spec);
  ASSERT_FALSE(share);
  EXPECT_EQ(share.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(share.error().message,
              AllOf(StartsWith("bind the workers: binding by core: "),
                    HasSubstr(" for 5000 workers, want at least one for each")));
}

TEST(ThreadsNoticeTest, SaysTheNumberAndWhereItComesFrom) {
  JobSpec spec;
  spec.workers = 4;
  MachineShare share;
  share.cores = 8;
  share.threads = {2, 2, 2, 2};
  EXPECT_EQ(ThreadsNotice(spec, share),
            "rankrun: OMP_NUM_THREADS is 2: 8 cores / 4 workers; set it to choose another\n");
  share.cpus = {{0}, {1}, {2}, {3}};
  share.threads = {3, 2, 2, 2};
  EXPECT_EQ(ThreadsNotice(spec, share),
            "rankrun: OMP_NUM_THREADS is 2 to 3: the cores that each worker is bound to; set it "
            "to choose another\n");
}

TEST(ThreadsNoticeTest, NamesTheLimitOfTheContainer) {
  JobSpec spec;
  spec.workers = 4;
  MachineShare share;
  share.cores = 8;
  share.is_limited = true;
  share.threads = {2, 2, 2, 2};
  EXPECT_EQ(ThreadsNotice(spec, share),
            "rankrun: OMP_NUM_THREADS is 2: 8 cores by the container's limit / 4 workers; set it "
            "to choose another\n");
}

TEST(ThreadsNoticeTest, IsSilentWhereTheUserChoseOrOneWorkerHasAll) {
  JobSpec spec;
  spec.workers = 4;
  spec.environment = {"OMP_NUM_THREADS=1"};
  MachineShare share;
  share.threads = {2, 2, 2, 2};
  EXPECT_EQ(ThreadsNotice(spec, share), "");
  spec.environment.clear();
  spec.workers = 1;
  share.threads = {8};
  EXPECT_EQ(ThreadsNotice(spec, share), "");
}

}  // namespace
}  // namespace rankrun::agent
