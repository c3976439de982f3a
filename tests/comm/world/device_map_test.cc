#include "comm/world/device_map.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

namespace rankrun::comm {
namespace {

std::string ErrorIn(const std::string& text) {
  auto map = ParseDeviceMap(text);
  return map ? "no error" : map.error().message;
}

TEST(DeviceMapTest, ANameAloneIsForTheCpu) {
  EXPECT_EQ(*ParseDeviceMap("tcp"), (DeviceMap{.cpu = "tcp"}));
}

TEST(DeviceMapTest, AMapHasOneBackendPerDevice) {
  EXPECT_EQ(*ParseDeviceMap("cpu:shm"), (DeviceMap{.cpu = "shm"}));
  EXPECT_EQ(*ParseDeviceMap("cuda:nccl,cpu:auto"), (DeviceMap{.cpu = "auto", .cuda = "nccl"}));
}

TEST(DeviceMapTest, ATextThatIsNoMapIsAnErrorWithWhatWouldBeRight) {
  for (const char* text :
       {":", "cpu:", ":shm", "cpu:shm,", ",cpu:shm", "shm,cuda:nccl", "cpu:a:b"}) {
    EXPECT_EQ(ErrorIn(text), "backend is \"" + std::string(text) +
                                 "\": want one name, such as shm, or DEVICE:BACKEND, such as "
                                 "cpu:shm");
  }
  EXPECT_EQ(ErrorIn("xpu:ccl"), "backend is \"xpu:ccl\": there is no device xpu: want cpu or cuda");
  EXPECT_EQ(ErrorIn("cpu:shm,cpu:tcp"), "backend is \"cpu:shm,cpu:tcp\": cpu occurs twice");
}

TEST(DeviceMapTest, AMapIsAvailableIfItsBackendIs) {
  EXPECT_TRUE(BackendAvailable("cpu:shm"));
  EXPECT_TRUE(BackendAvailable("auto"));
  EXPECT_FALSE(BackendAvailable("cpu:none"));
  EXPECT_FALSE(BackendAvailable("cpu:shm,cuda:none"));
}

TEST(DeviceMapTest, WithoutABackendForTheCpuItIsChosen) {
  for (const char* text : {"nccl", "cuda:nccl"}) {
    EXPECT_EQ(*ParseDeviceMap(text), (DeviceMap{.cpu = "auto", .cuda = "nccl"}));
  }
}

TEST(DeviceMapTest, HasOneTextForm) {
  EXPECT_EQ(FormatDeviceMap({.cpu = "shm"}), "shm");
  EXPECT_EQ(FormatDeviceMap({.cpu = "shm", .cuda = "nccl"}), "cpu:shm,cuda:nccl");
  EXPECT_EQ(FormatDeviceMap({.cpu = "nccl"}), "cpu:nccl");  // the name alone means cuda
}

TEST(DeviceMapTest, EachDeviceHasADefaultBackend) {
  EXPECT_EQ(DefaultBackendForDevice("cpu"), "auto");
  EXPECT_EQ(DefaultBackendForDevice("cuda"), "nccl");
  EXPECT_EQ(DefaultBackendForDevice("cuda:1"), "nccl");
  for (std::string device : {"", "xpu", "cuda:", "cuda:x", "cuda1"}) {
    EXPECT_EQ(DefaultBackendFor(device).error().message,
              "no backend for the device \"" + device + "\": want cpu, cuda or cuda:INDEX");
  }
  EXPECT_THROW(DefaultBackendForDevice("xpu"), DistError);
  const char* backend = nullptr;
  EXPECT_EQ(rankrun_default_backend_for_device("cuda:0", &backend), RANKRUN_OK);
  EXPECT_STREQ(backend, "nccl");
  EXPECT_EQ(rankrun_default_backend_for_device("xpu", &backend), RANKRUN_INVALID);
  EXPECT_EQ(backend, nullptr);
}

TEST(DeviceMapTest, AProgramReadsNamesAndMaps) {
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(rankrun::Backend::Parse("GLOO"), rankrun::Backend::kGloo);
  EXPECT_EQ(rankrun::Backend::Parse("mine_2"), "mine_2");
  EXPECT_THROW(rankrun::Backend::Parse("cpu:shm"), DistError);
  EXPECT_THROW(rankrun::Backend::Parse(""), DistError);
  EXPECT_EQ(DeviceBackendMap("CPU:shm,CUDA:nccl"), (Map{{"cpu", "shm"}, {"cuda", "nccl"}}));
  EXPECT_EQ(DeviceBackendMap("nccl"), (Map{{"cpu", "auto"}, {"cuda", "nccl"}}));
  EXPECT_EQ(DeviceBackendMap("tcp"), (Map{{"cpu", "tcp"}}));
  EXPECT_THROW(DeviceBackendMap("xpu:ccl"), DistError);
  EXPECT_THROW(DeviceBackendMap("a b"), DistError);
}

TEST(DeviceMapTest, ThereIsAListOfNames) {
  EXPECT_THAT(rankrun::Backend::List(),
              testing::IsSupersetOf({"auto", "gloo", "hierarchical", "mpi", "nccl", "shm", "tcp"}));
}

struct DeviceMapOptionsTest : testing::Test {
  static std::string ErrorOf(const NcclOptions& options, const DeviceMap& map) {
    auto ok = CheckNcclOptions(options, map);
    return ok ? "" : ok.error().message;
  }

  const DeviceMap gpus{.cpu = "auto", .cuda = "nccl"};
};

TEST_F(DeviceMapOptionsTest, TheDefaultsFitAnyBackend) {
  EXPECT_EQ(ErrorOf({}, gpus), "");
  EXPECT_EQ(ErrorOf({}, {.cpu = "shm"}), "");
}

TEST_F(DeviceMapOptionsTest, OthersNeedNccl) {
  EXPECT_EQ(ErrorOf({.min_ctas = 2, .max_ctas = 2}, gpus), "");
  EXPECT_EQ(ErrorOf({.high_priority_stream = true}, {.cpu = "shm"}),
            "options of NCCL: the backend is \"shm\": want one with nccl, such as "
            "\"cpu:auto,cuda:nccl\"");
}

TEST_F(DeviceMapOptionsTest, NumbersAreInOrder) {
  EXPECT_EQ(ErrorOf({.min_ctas = -1}, gpus),
            "options of NCCL: min_ctas is -1: want at least 1, or 0 for NCCL's choice");
  EXPECT_EQ(ErrorOf({.max_ctas = -7}, gpus),
            "options of NCCL: max_ctas is -7: want at least 1, or 0 for NCCL's choice");
  EXPECT_EQ(ErrorOf({.min_ctas = 3, .max_ctas = 2}, gpus),
            "options of NCCL: min_ctas is 3: want at most max_ctas, 2");
}

TEST_F(DeviceMapOptionsTest, AppearInTheWordsThatRanksCompare) {
  EXPECT_EQ(InWords({.name = "shm"}), "backend shm");
  EXPECT_EQ(InWords({.name = "nccl", .nccl = {.high_priority_stream = true, .max_ctas = 8}}),
            "backend nccl with a high-priority stream and max_ctas 8");
}

}  // namespace
}  // namespace rankrun::comm
