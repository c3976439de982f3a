#include "agent/machine/gpus.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "agent/machine/machine_share.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using Names = std::vector<std::string>;

TEST(VisibleDevicesTest, AreReadAsCudaReadsThem) {
  EXPECT_EQ(ParseVisibleDevices("0"), Names({"0"}));
  EXPECT_EQ(ParseVisibleDevices("2,4,7"), Names({"2", "4", "7"}));
  EXPECT_EQ(ParseVisibleDevices(" 2, 4 "), Names({"2", "4"}));
  EXPECT_EQ(ParseVisibleDevices("GPU-8f2a,MIG-77b1"), Names({"GPU-8f2a", "MIG-77b1"}));
  EXPECT_EQ(ParseVisibleDevices(""), Names());
  EXPECT_EQ(ParseVisibleDevices("-1"), Names());
  EXPECT_EQ(ParseVisibleDevices("0,1,-1,2"), Names({"0", "1"}));
  EXPECT_EQ(ParseVisibleDevices("0,,2"), Names({"0"}));
  EXPECT_EQ(ParseVisibleDevices("0,one,2"), Names({"0"}));
  EXPECT_EQ(ParseVisibleDevices("NoDevFiles"), Names());
  EXPECT_EQ(ParseVisibleDevices("0,1,"), Names({"0", "1"}));
  EXPECT_EQ(ParseVisibleDevices("0,1,0"), Names()) << "twice: CUDA sees none";
}

TEST(VisibleGpusTest, TheVariableWins) {
  EXPECT_EQ(*VisibleGpus("1,3", "/no/proc"), Names({"1", "3"}));
  EXPECT_EQ(*VisibleGpus("", "/no/proc"), Names());
}

TEST(VisibleGpusTest, WithoutADriverThereAreNoneAtOnce) {
  if (void* real = dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    dlclose(real);
    GTEST_SKIP() << "this machine has a driver";
  }
  test::TempFolder proc;
  auto gpus = VisibleGpus(std::nullopt, proc.path());
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(*gpus, Names());
  EXPECT_EQ(*GpuNumaNodes({"0", "1"}, proc.path()), std::vector<int>());
}

// Loads a fake library with NVML's name; dlopen finds it by that name from then
// on.
struct GpusTest : testing::Test {
  GpusTest() : library(dlopen(RANKRUN_FAKE_NVML, RTLD_NOW)) {
    if (library == nullptr) ADD_FAILURE() << dlerror();
  }
  ~GpusTest() override {
    if (library != nullptr) dlclose(library);
  }

  void SetNumaNode(const std::string& address, const std::string& node) const {
    folder.Write("sys/bus/pci/devices/" + address + "/numa_node", node + "\n");
  }
  Result<std::vector<int>> Nodes(const Names& gpus) const {
    return GpuNumaNodes(gpus, folder.Path("proc"), folder.Path("sys"));
  }

  void* library;
  test::TempFolder folder;
  test::ScopedVariable buses{"FAKE_NVML_PCI", "65 bb b"};
  test::ScopedVariable good{"FAKE_NVML_INIT", nullptr};
};

TEST_F(GpusTest, NvmlCountsThem) {
  EXPECT_EQ(*VisibleGpus(std::nullopt, folder.path()), Names({"0", "1", "2"}));
  test::ScopedVariable none("FAKE_NVML_PCI", "");
  EXPECT_EQ(*VisibleGpus(std::nullopt, folder.path()), Names());
}

TEST_F(GpusTest, WithoutADriverThatAnswersNvmlTheDriversFolderCounts) {
  test::ScopedVariable not_loaded("FAKE_NVML_INIT", "9");
  EXPECT_EQ(*VisibleGpus(std::nullopt, folder.Path("proc")), Names());
  folder.Write("proc/driver/nvidia/gpus/0000:bb:00.0/information", "");
  folder.Write("proc/driver/nvidia/gpus/0000:65:00.0/information", "");
  EXPECT_EQ(*VisibleGpus(std::nullopt, folder.Path("proc")), Names({"0", "1"}));
  SetNumaNode("0000:bb:00.0", "1");
  EXPECT_EQ(*Nodes({"1", "0"}), std::vector<int>({1, 0}));
  EXPECT_EQ(Nodes({"2"}).error().message, "there is no GPU 2");
}

TEST_F(GpusTest, ADriverOfAnotherVersionIsAnError) {
  test::ScopedVariable mismatch("FAKE_NVML_INIT", "18");
  auto gpus = VisibleGpus(std::nullopt, folder.path());
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().code, ErrorCode::kSystem);
  EXPECT_EQ(gpus.error().message,
            "count GPUs: libnvidia-ml.so.1: nvmlInit_v2: Driver/library version mismatch");
}

TEST_F(GpusTest, EachHasTheNumaNodeOfItsPciAddress) {
  SetNumaNode("0000:65:00.0", "0");
  SetNumaNode("0000:bb:00.0", "3");
  SetNumaNode("0000:0b:00.0", "-1");
  EXPECT_EQ(*Nodes({"0", "1", "2"}), std::vector<int>({0, 3, 0}));
  EXPECT_EQ(*Nodes({"1", "0"}), std::vector<int>({3, 0}));
  EXPECT_EQ(*Nodes({"GPU-fake-1", "MIG-fake-1"}), std::vector<int>({3, 3}));
}

TEST_F(GpusTest, AnUnknownNumaNodeIsZero) {
  EXPECT_EQ(*Nodes({"0", "1"}), std::vector<int>({0, 0}));
}

TEST_F(GpusTest, AGpuThatDoesNotExistIsNamed) {
  auto nodes = Nodes({"0", "7"});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(nodes.error().message, "there is no GPU 7");
}

TEST_F(GpusTest, ABindingToAMissingGpuNamesTheOrigin) {
  JobSpec spec;
  spec.binding = Binding::kNuma;
  spec.environment = {"CUDA_VISIBLE_DEVICES=0,7"};
  auto share = ShareMachine(spec);
  ASSERT_FALSE(share);
  EXPECT_EQ(share.error().message, "bind the workers: CUDA_VISIBLE_DEVICES=0,7: there is no GPU 7");
  spec.gpus = {"1", "9"};
  EXPECT_EQ(ShareMachine(spec).error().message, "bind the workers: --gpus 1,9: there is no GPU 9");
}

TEST_F(GpusTest, ABindingIsNearTheGpus) {
  test::ScopedVariable synthetic("HWLOC_SYNTHETIC", "numa:1 core:4096 pu:1");
  JobSpec spec;
  spec.binding = Binding::kNuma;
  spec.workers = 2;
  auto share = ShareMachine(spec);
  ASSERT_TRUE(share) << share.error().message;
  EXPECT_EQ(share->gpus, Names({"0", "1", "2"}));
  EXPECT_EQ(share->cpus, std::vector<Cpus>(2, *AllowedCpus()));
}

}  // namespace
}  // namespace rankrun::agent
