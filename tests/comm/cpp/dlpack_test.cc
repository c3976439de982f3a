#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/dlpack.h>

namespace rankrun {
namespace {

struct DLPackTest : testing::Test {
  DLPackTest() {
    tensor.data = memory;
    tensor.device = {.device_type = kDLCPU, .device_id = 0};
    tensor.ndim = 2;
    tensor.dtype = {.code = kDLFloat, .bits = 32, .lanes = 1};
    tensor.shape = shape;
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
  }

  std::string Refusal() {
    try {
      FromDLTensor(&tensor);
    } catch (const DistError& error) {
      return error.what();
    }
    return "";
  }

  float memory[12] = {};
  int64_t shape[2] = {3, 4};
  int64_t strides[2] = {4, 1};
  DLTensor tensor;
};

TEST_F(DLPackTest, AViewHasMemoryTypeCountAndRows) {
  for (int64_t* given : {static_cast<int64_t*>(nullptr), strides}) {
    tensor.strides = given;
    Tensor view = FromDLTensor(&tensor);
    EXPECT_EQ(view.data, memory);
    EXPECT_EQ(view.dtype, DType::kFloat32);
    EXPECT_EQ(view.count, 12U);
    EXPECT_EQ(view.row, 4U);
    EXPECT_EQ(view.device, Device{});
  }
}

TEST_F(DLPackTest, AManagedTensorIsTheSame) {
  DLManagedTensor managed{.dl_tensor = tensor, .manager_ctx = nullptr, .deleter = nullptr};
  EXPECT_EQ(FromDLPack(managed).count, 12U);
}

TEST_F(DLPackTest, TheOffsetCountsInBytes) {
  tensor.byte_offset = 8;
  shape[0] = 2;
  EXPECT_EQ(FromDLTensor(&tensor).data, &memory[2]);
}

TEST_F(DLPackTest, ANumberHasNoDimensions) {
  tensor.ndim = 0;
  EXPECT_EQ(FromDLTensor(&tensor).count, 1U);
  EXPECT_EQ(FromDLTensor(&tensor).row, 1U);
}

TEST_F(DLPackTest, StridesDoNotMatterWhereThereIsOneOrNone) {
  tensor.strides = strides;
  shape[0] = 1;
  strides[0] = 77;
  EXPECT_EQ(FromDLTensor(&tensor).count, 4U);
  shape[1] = 0;
  strides[1] = 77;
  tensor.data = nullptr;
  EXPECT_EQ(FromDLTensor(&tensor).count, 0U);
}

// Every collective would refuse rows of 0 elements.
TEST_F(DLPackTest, AnEmptyTensorHasRowsOfOneElement) {
  for (size_t none : {0U, 1U}) {
    shape[none] = 0;
    shape[1 - none] = 3;
    EXPECT_EQ(FromDLTensor(&tensor).count, 0U);
    EXPECT_EQ(FromDLTensor(&tensor).row, 1U);
  }
}

TEST_F(DLPackTest, DeviceMemoryKeepsItsDevice) {
  tensor.device = {.device_type = kDLCUDA, .device_id = 3};
  EXPECT_EQ(FromDLTensor(&tensor).device, (Device{.type = DeviceType::kCuda, .index = 3}));
  tensor.device = {.device_type = kDLCUDAHost, .device_id = 3};
  EXPECT_EQ(FromDLTensor(&tensor).device, Device{});
}

TEST_F(DLPackTest, NonDenseTensorsAreRefused) {
  tensor.strides = strides;
  strides[0] = 1;
  strides[1] = 3;
  EXPECT_EQ(Refusal(),
            "DLPack: strides (1, 3) of shape (3, 4) are not those of a dense tensor in row-major "
            "order: pass a contiguous copy");
}

TEST_F(DLPackTest, UnknownTypesAreRefused) {
  tensor.dtype = {.code = kDLFloat, .bits = 32, .lanes = 4};
  EXPECT_EQ(Refusal(), "DLPack: elements have 4 lanes: want 1");
  tensor.dtype = {.code = kDLOpaqueHandle, .bits = 64, .lanes = 1};
  EXPECT_EQ(Refusal(), "DLPack: unknown element type: code 3 of 64 bits");
  tensor.dtype = {.code = kDLFloat, .bits = 32, .lanes = 1};
  tensor.device.device_type = kDLVulkan;
  EXPECT_EQ(Refusal(), "DLPack: device type 7: want 1 (CPU), 2 (CUDA) or 3 (CPU, pinned)");
  tensor.device.device_type = static_cast<DLDeviceType>(13);  // CUDA, managed
  EXPECT_EQ(Refusal(), "DLPack: device type 13: want 1 (CPU), 2 (CUDA) or 3 (CPU, pinned)");
}

TEST_F(DLPackTest, ImpossibleTensorsAreRefused) {
  tensor.data = nullptr;
  EXPECT_EQ(Refusal(), "DLPack: shape (3, 4) without memory");
  shape[0] = -1;
  EXPECT_EQ(Refusal(), "DLPack: impossible shape (-1, 4)");
  shape[0] = INT64_MAX;
  EXPECT_EQ(Refusal(), "DLPack: impossible shape (9223372036854775807, 4)");
}

TEST_F(DLPackTest, EveryDTypeSurvivesTheRoundTrip) {
  for (int i = 0; i < kDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    Tensor sent(memory, dtype, 6);
    sent.row = 3;
    DLManagedTensor* managed = ToDLPack(sent, nullptr);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, 8 * SizeOf(dtype)) << NameOf(dtype);
    Tensor view = FromDLPack(*managed);
    EXPECT_EQ(view.dtype, dtype);
    EXPECT_EQ(view.data, memory);
    EXPECT_EQ(view.count, 6U);
    EXPECT_EQ(view.row, 3U);
    managed->deleter(managed);
  }
}

TEST_F(DLPackTest, TheOwnerLivesUntilTheDeleterIsCalled) {
  auto owner = std::make_shared<std::vector<float>>(5);
  std::weak_ptr<std::vector<float>> watch = owner;
  Tensor sent(*owner);
  DLManagedTensor* managed = ToDLPack(sent, std::move(owner));
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(managed->dl_tensor.ndim, 1);
  EXPECT_EQ(managed->dl_tensor.shape[0], 5);
  managed->deleter(managed);
  EXPECT_TRUE(watch.expired());
}

TEST_F(DLPackTest, RowsMustFit) {
  Tensor sent(memory, DType::kFloat32, 6);
  sent.row = 4;
  EXPECT_THROW(ToDLPack(sent, nullptr), DistError);
}

}  // namespace
}  // namespace rankrun
