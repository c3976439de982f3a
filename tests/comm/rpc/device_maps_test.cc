#include "comm/rpc/device_maps.h"

#include <gmock/gmock.h>

namespace rankrun::comm::rpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr Device kCpu{};
Device Gpu(int index) { return {.type = DeviceType::kCuda, .index = index}; }

struct DeviceMapsTest : testing::Test {
  // Two workers with two GPUs each.
  std::vector<WorkerDevices> workers{{.worker = "a", .gpus = 2}, {.worker = "b", .gpus = 2}};
  WorkerDevices& a = workers[0];
  WorkerDevices& b = workers[1];

  std::string Error(bool is_complete = true) const {
    auto ok = CheckDeviceMaps(workers, is_complete);
    if (ok) return "no error";
    EXPECT_EQ(ok.error().code, ErrorCode::kInvalid);
    return ok.error().message;
  }
};

TEST_F(DeviceMapsTest, MapsThatFitAreRight) {
  EXPECT_EQ(Error(), "no error");
  a.maps = {{"b", {{Gpu(0), Gpu(1)}, {Gpu(1), Gpu(0)}}}};
  EXPECT_EQ(Error(), "no error");
  auto reverse = ReverseMaps(workers, "b");
  EXPECT_THAT(reverse,
              ElementsAre(Pair("a", ElementsAre(Pair(Gpu(1), Gpu(0)), Pair(Gpu(0), Gpu(1))))));
  EXPECT_THAT(ReverseMaps(workers, "a"), IsEmpty());
  EXPECT_THAT(DevicesInUse(a, {}), ElementsAre(Gpu(0), Gpu(1)));
  EXPECT_THAT(DevicesInUse(b, reverse), ElementsAre(Gpu(0), Gpu(1)));
}

TEST_F(DeviceMapsTest, D1_ADeviceTwice) {
  a.devices = {Gpu(0), Gpu(0)};
  EXPECT_EQ(Error(), "worker a has a device twice: cuda:0, cuda:0");
  a.maps = {{"c", {}}};
  EXPECT_THAT(Error(), HasSubstr("a device twice")) << "the first rule wins";
}

TEST_F(DeviceMapsTest, D2_ADeviceThatIsNotThere) {
  a.devices = {Gpu(2)};
  EXPECT_EQ(Error(), "worker a has the device cuda:2 in its list, but has cuda:0..1");
  a.devices = {Gpu(-1)};
  EXPECT_EQ(Error(), "worker a has the device cuda:-1 in its list, but has cuda:0..1");
  a.devices = {kCpu, Gpu(1)};
  EXPECT_EQ(Error(), "no error");
}

TEST_F(DeviceMapsTest, D3_AnUnknownCallee) {
  a.maps = {{"c", {{Gpu(0), Gpu(0)}}}};
  EXPECT_EQ(Error(), "worker a has a device map for c: want one of a, b");
  EXPECT_EQ(Error(false), "no error");
  a.maps = {{"no name", {{Gpu(0), Gpu(0)}}}};
  EXPECT_EQ(Error(false), "worker a has a device map for \"no name\", which is no worker's name");
}

TEST_F(DeviceMapsTest, D4_ATargetTwice) {
  a.maps = {{"b", {{Gpu(0), Gpu(0)}, {Gpu(1), Gpu(0)}}}};
  EXPECT_EQ(Error(),
            "worker a has in its device map for b a target twice: cuda:0 to cuda:0, "
            "cuda:1 to cuda:0");
  a.maps = {{"b", {{Gpu(0), Gpu(0)}, {Gpu(0), Gpu(1)}}}};
  EXPECT_THAT(Error(), HasSubstr("a source twice"));
}

TEST_F(DeviceMapsTest, D5_ASourceThatTheWorkerDoesNotUse) {
  a.devices = {Gpu(0)};
  a.maps = {{"b", {{Gpu(1), Gpu(0)}}}};
  EXPECT_EQ(Error(),
            "worker a has the source cuda:1 in its device map for b, but a uses cuda:0 "
            "only");
}

TEST_F(DeviceMapsTest, D6_ASourceThatIsNotThere) {
  a.maps = {{"b", {{Gpu(2), Gpu(0)}}}};
  EXPECT_EQ(Error(),
            "worker a has the source cuda:2 in its device map for b, but a has "
            "cuda:0..1");
  a.gpus = 0;
  a.maps = {{"b", {{Gpu(0), Gpu(0)}}}};
  EXPECT_THAT(Error(), HasSubstr("but a has no GPU"));
}

TEST_F(DeviceMapsTest, D7_ATargetThatTheCalleeDoesNotUse) {
  b.devices = {Gpu(0)};
  a.maps = {{"b", {{Gpu(0), Gpu(1)}}}};
  EXPECT_EQ(Error(),
            "worker a has the target cuda:1 in its device map for b, but b uses cuda:0 "
            "only");
}

TEST_F(DeviceMapsTest, D8_ATargetThatIsNotThere) {
  a.maps = {{"b", {{Gpu(0), Gpu(2)}}}};
  EXPECT_EQ(Error(),
            "worker a has the target cuda:2 in its device map for b, but b has "
            "cuda:0..1");
}

TEST_F(DeviceMapsTest, TheCpuAndEmptyMapsFit) {
  a.maps = {{"b", {{kCpu, Gpu(0)}, {Gpu(0), kCpu}}}};
  EXPECT_EQ(Error(), "no error");
  EXPECT_THAT(DevicesInUse(a, {}), ElementsAre(Gpu(0)));
  a.maps = {{"b", {}}};
  EXPECT_EQ(Error(), "no error");
  EXPECT_THAT(DevicesInUse(a, ReverseMaps(workers, "a")), IsEmpty());
}

TEST_F(DeviceMapsTest, WorkersTellEachOtherAll) {
  a.maps = {{"b", {{Gpu(0), Gpu(1)}, {kCpu, Gpu(0)}}}, {"c", {}}};
  a.devices = {Gpu(1), kCpu};
  auto read = WorkerDevicesIn(TextOf(a));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, a);
  EXPECT_EQ(WorkerDevicesIn("{}").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(WorkerDevicesIn("").error().code, ErrorCode::kProtocol);
}

TEST_F(DeviceMapsTest, AListOfDevicesIsSorted) {
  a.devices = {Gpu(1), kCpu, Gpu(0)};
  a.maps = {{"b", {{Gpu(1), Gpu(0)}}}};
  EXPECT_THAT(DevicesInUse(a, {}), ElementsAre(Gpu(0), Gpu(1)));
}

}  // namespace
}  // namespace rankrun::comm::rpc
