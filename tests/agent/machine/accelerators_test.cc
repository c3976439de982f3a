#include "agent/machine/accelerators.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using Names = std::vector<std::string>;

// A root folder of made files.
struct AcceleratorsTest : testing::Test {
  void Write(const std::string& path, const std::string& text = "") const {
    std::filesystem::path file = folder.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  void Link(const std::string& path, const std::string& target) const {
    std::filesystem::path link = folder.Path(path);
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(target, link);
  }

  void AddAmd(int node, int simd_count) const {
    Write("sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
          "cpu_cores_count 0\nsimd_count " + std::to_string(simd_count) + "\nmem_banks_count 1\n");
  }

  // As in /sys, where the node links to the folder of the PCI device.
  void AddDrm(const std::string& name, const std::string& address,
              const std::string& driver) const {
    std::string device = "sys/devices/pci0000:00/" + address;
    Link(device + "/driver", "../../../bus/pci/drivers/" + driver);
    Link("sys/class/drm/" + name + "/device", "../../../devices/pci0000:00/" + address);
  }

  Accelerators Find(const Names& environment = {}) const {
    return FindAccelerators(environment, folder.path());
  }
  Names Visible(const Names& environment = {}) const {
    return *VisibleDevices(Find(environment), folder.path());
  }

  test::TempFolder folder;
};

TEST_F(AcceleratorsTest, GpusOfAmdAreNodesWithSimdUnits) {
  AddAmd(0, 0);  // a CPU
  AddAmd(1, 440);
  AddAmd(2, 440);
  EXPECT_EQ(Find(), (Accelerators{Maker::kAmd, "HIP_VISIBLE_DEVICES"}));
  EXPECT_EQ(Visible(), (Names{"0", "1"}));
}

TEST_F(AcceleratorsTest, AVariableOfAmdChoosesAmongThem) {
  AddAmd(1, 440);
  EXPECT_EQ(Find({"ROCR_VISIBLE_DEVICES=1,3"}).variable, "ROCR_VISIBLE_DEVICES");
  EXPECT_EQ(Visible({"ROCR_VISIBLE_DEVICES=1,3"}), (Names{"1", "3"}));
  EXPECT_EQ(Visible({"ROCR_VISIBLE_DEVICES=1,3", "HIP_VISIBLE_DEVICES=0"}), Names{"0"});
  Accelerators by_cuda = Find({"CUDA_VISIBLE_DEVICES=0,1"});  // AMD's GPUs obey it, too
  EXPECT_EQ(by_cuda.maker, Maker::kAmd);
  EXPECT_EQ(by_cuda.variable, "CUDA_VISIBLE_DEVICES");
}

TEST_F(AcceleratorsTest, GpusOfIntelAreRenderNodesThatAreOurs) {
  AddDrm("renderD128", "0000:00:02.0", "i915");  // inside of the CPU
  AddDrm("renderD129", "0000:29:00.0", "xe");
  AddDrm("renderD130", "0000:3a:00.0", "i915");
  AddDrm("renderD131", "0000:4b:00.0", "xe");  // of another container
  AddDrm("renderD132", "0000:5c:00.0", "ast");
  AddDrm("card1", "0000:29:00.0/drm", "xe");
  for (const char* name : {"renderD128", "renderD129", "renderD130", "renderD132", "card1"}) {
    Write(std::string("dev/dri/") + name);
  }
  EXPECT_EQ(Find(), (Accelerators{Maker::kIntel, "ZE_AFFINITY_MASK"}));
  EXPECT_EQ(Visible(), (Names{"0", "1"}));
  EXPECT_EQ(Visible({"ZE_AFFINITY_MASK=1.0,1.1"}), (Names{"1.0", "1.1"}));
  EXPECT_EQ(Visible({"ONEAPI_DEVICE_SELECTOR=level_zero:gpu"}), (Names{"0", "1"}));
  EXPECT_EQ(Visible({"ONEAPI_DEVICE_SELECTOR=!level_zero:7"}), (Names{"0", "1"}));
}

TEST_F(AcceleratorsTest, NpusAreDevicesWithANumber) {
  for (const char* name : {"davinci0", "davinci5", "davinci_manager", "davinci"}) {
    Write(std::string("dev/") + name);
  }
  EXPECT_EQ(Find(), (Accelerators{Maker::kHuawei, "ASCEND_RT_VISIBLE_DEVICES"}));
  EXPECT_EQ(Visible(), (Names{"0", "1"}));
  EXPECT_EQ(Visible({"ASCEND_RT_VISIBLE_DEVICES=5"}), Names{"5"});
}

TEST_F(AcceleratorsTest, OneapisSelectorNamesDevicesOfLevelZero) {
  auto find = [this](const std::string& selector) {
    return Find({"ZE_AFFINITY_MASK=9", "ONEAPI_DEVICE_SELECTOR=" + selector});
  };
  EXPECT_EQ(find("level_zero:0,1").listed, (Names{"level_zero:0", "level_zero:1"}));
  EXPECT_EQ(find("opencl:cpu; *:3.1").listed, Names{"*:3.1"});
  for (const char* all : {"*:gpu", "level_zero:*", "*:*", "!level_zero:0", "junk"}) {
    EXPECT_EQ(find(all).variable, "ZE_AFFINITY_MASK") << all;
  }
  for (const char* none : {"opencl:cpu", "opencl:0", "level_zero:cpu"}) {
    EXPECT_EQ(find(none).maker, Maker::kNvidia) << none << " hides them";
  }
  EXPECT_EQ(Find({"ONEAPI_DEVICE_SELECTOR=*:gpu"}).named_by, "ONEAPI_DEVICE_SELECTOR=*:gpu");
  EXPECT_EQ(Find({"ONEAPI_DEVICE_SELECTOR=*:*"}).named_by, "");
}

TEST_F(AcceleratorsTest, DevicesThatAreHereComeBeforeThoseThatAVariableNames) {
  Names environment = {"CUDA_VISIBLE_DEVICES=0,1", "ASCEND_RT_VISIBLE_DEVICES=0"};
  EXPECT_EQ(Find(environment).maker, Maker::kNvidia);
  Write("dev/davinci0");
  EXPECT_EQ(Find(environment).maker, Maker::kHuawei);
  EXPECT_EQ(Find(environment).named_by, "ASCEND_RT_VISIBLE_DEVICES=0");
  AddAmd(1, 4);
  EXPECT_EQ(Find({"HIP_VISIBLE_DEVICES="}).maker, Maker::kHuawei) << "hidden";
  EXPECT_EQ(Find({"HIP_VISIBLE_DEVICES=", "ASCEND_RT_VISIBLE_DEVICES=-1"}).maker, Maker::kNvidia);
  Write("proc/driver/nvidia/gpus/0000:65:00.0/information");
  EXPECT_EQ(Find({"HIP_VISIBLE_DEVICES=0"}).maker, Maker::kNvidia);
}

TEST_F(AcceleratorsTest, WithoutDevicesTheVariablesCount) {
  EXPECT_EQ(Find(), Accelerators());
  EXPECT_EQ(Find({"HIP_VISIBLE_DEVICES=0,1"}),
            (Accelerators{Maker::kAmd, "HIP_VISIBLE_DEVICES", Names{"0", "1"},
                          "HIP_VISIBLE_DEVICES=0,1"}));
  Accelerators twice = Find({"CUDA_VISIBLE_DEVICES=0,0"});
  EXPECT_EQ(twice.listed, Names());
  EXPECT_EQ(twice.named_by, "CUDA_VISIBLE_DEVICES=0,0");
  EXPECT_EQ(Find({"CUDA_VISIBLE_DEVICES=NoDevFiles"}).named_by, "");
}

TEST_F(AcceleratorsTest, TheEntriesOfAListAreForOneWorkerEach) {
  EXPECT_EQ(EntriesOf("CUDA_VISIBLE_DEVICES", "4, 5"), (Names{"4", "5"}));
  EXPECT_EQ(EntriesOf("ONEAPI_DEVICE_SELECTOR", "level_zero:2,3"),
            (Names{"level_zero:2", "level_zero:3"}));
}

TEST_F(AcceleratorsTest, AValueHasTheFormOfItsVariable) {
  EXPECT_EQ(ValueFor("CUDA_VISIBLE_DEVICES", {"4", "5"}), "4,5");
  EXPECT_EQ(ValueFor("ZE_AFFINITY_MASK", {"0.1", "1"}), "0.1,1");
  EXPECT_EQ(ValueFor("ONEAPI_DEVICE_SELECTOR", {"2", "0.1", "*:3"}),
            "level_zero:2;level_zero:0.1;*:3");
}

}  // namespace
}  // namespace rankrun::agent
