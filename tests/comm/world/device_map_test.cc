#include "comm/world/device_map.h"

#include <gmock/gmock.h>

#include <rankrun/distributed.h>

namespace rankrun::comm {
namespace {

std::string ErrorIn(const std::string& text) {
  auto map = ParseDeviceMap(text);
  return map ? "no error" : map.error().message;
}

TEST(DeviceMapTest, ANameAloneIsForTheCpu) {
  EXPECT_EQ(*ParseDeviceMap("tcp"), (DeviceMap{{"cpu", "tcp"}}));
}

TEST(DeviceMapTest, AMapHasOneBackendPerDevice) {
  EXPECT_EQ(*ParseDeviceMap("cpu:shm"), (DeviceMap{{"cpu", "shm"}}));
  EXPECT_EQ(*ParseDeviceMap("cuda:nccl,cpu:auto"), (DeviceMap{{"cpu", "auto"}, {"cuda", "nccl"}}));
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
  EXPECT_FALSE(BackendAvailable("cpu:shm,cuda:nccl"));
}

TEST(DeviceMapTest, ABackendForGpusIsRefused) {
  EXPECT_EQ(*CpuBackend("cpu:tcp"), "tcp");
  for (const char* text : {"cpu:shm,cuda:nccl", "cuda:nccl"}) {
    auto backend = CpuBackend(text);
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(backend.error().message,
              "backend is \"" + std::string(text) +
                  "\": this librankrun has no backend for cuda, and refuses tensors in GPU memory: "
                  "want one for cpu alone, such as cpu:shm");
  }
}

}  // namespace
}  // namespace rankrun::comm
