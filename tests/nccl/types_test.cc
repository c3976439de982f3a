// Reductions between GPUs for each element type and operator.

#include <gmock/gmock.h>

#include <cstring>

#include "tests/comm/reduce/naive_reduction.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr size_t kCount = 8;

std::vector<uint8_t> Corners(DType dtype, int rank) {
  std::vector<uint8_t> bytes(kCount * SizeOf(dtype));
  for (size_t i = 0; i < kCount; ++i) {
    uint64_t bits = naive::Corner(dtype, (static_cast<int>(i) + rank) % 8);
    std::memcpy(bytes.data() + i * SizeOf(dtype), &bits, SizeOf(dtype));
  }
  return bytes;
}

// Returns bytes that differ between ranks and places, for types that are only moved.
std::vector<uint8_t> Bytes(DType dtype, int rank) {
  std::vector<uint8_t> bytes(kCount * SizeOf(dtype));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = (i + static_cast<size_t>(rank)) % 2 == 0 ? 1 : 0;
  return bytes;
}

// Returns the error of an all-reduce on GPUs, or "" if its data is that of the same
// all-reduce on CPU memory.
std::string Compared(ProcessGroup& world, DType dtype, ReduceOp op) {
  auto on_cpu = Corners(dtype, world.group_rank());
  OnGpu<uint8_t> on_gpu(on_cpu);
  Tensor tensor = on_gpu;
  tensor.dtype = dtype;
  tensor.count = kCount;
  std::string error = ErrorOf([&] { world.AllReduce(tensor, op); });
  if (error != "no error") return error;
  world.AllReduce(Tensor(on_cpu.data(), dtype, kCount), op);
  auto result = on_gpu.Read();
  auto* a = reinterpret_cast<const std::byte*>(result.data());
  auto* b = reinterpret_cast<const std::byte*>(on_cpu.data());
  size_t place = naive::FirstDifference(dtype, a, b, kCount);
  if (place == kCount) return "";
  return "operator " + std::to_string(op.kind) + ": element " + std::to_string(place) +
         " differs; ";
}

struct GpuTypesTest : testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, GpuTypesTest,
                         testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                         DType::kBFloat16, DType::kInt8, DType::kInt32,
                                         DType::kInt64, DType::kUInt8, DType::kUInt32,
                                         DType::kUInt64),
                         [](const auto& one) { return std::string(NameOf(one.param)); });

TEST_P(GpuTypesTest, EveryOperatorOfNcclGivesTheResultOfTheCpu) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    std::string text;
    for (auto op :
         {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg}) {
      text += Compared(world, GetParam(), op);
    }
    bool is_floating = GetParam() <= DType::kBFloat16;
    if (is_floating) text += Compared(world, GetParam(), ReduceOp::PremulSum(0.5));
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(GpuComplexTest, IsReducedAsPairsOfReals) {
  auto texts = OnGpus(3, [](ProcessGroup& world) {
    std::vector<std::complex<float>> values{{1, 2}, {-3, 4}};
    std::string text;
    for (auto op : {ReduceOp(ReduceOp::kSum), ReduceOp(ReduceOp::kAvg), ReduceOp::PremulSum(2)}) {
      OnGpu<std::complex<float>> on_gpu(values);
      auto on_cpu = values;
      world.AllReduce(on_gpu, op);
      world.AllReduce(on_cpu, op);
      if (on_gpu.Read() != on_cpu) text += "another result; ";
    }
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

// NCCL has no such type or operator. All ranks refuse the call.
struct RefusedByNcclTest : testing::TestWithParam<std::pair<DType, ReduceOp::Kind>> {};
INSTANTIATE_TEST_SUITE_P(Calls, RefusedByNcclTest,
                         testing::Values(std::pair(DType::kInt16, ReduceOp::kSum),
                                         std::pair(DType::kUInt16, ReduceOp::kMax),
                                         std::pair(DType::kBool, ReduceOp::kSum),
                                         std::pair(DType::kInt32, ReduceOp::kBitAnd),
                                         std::pair(DType::kInt32, ReduceOp::kBitOr),
                                         std::pair(DType::kInt32, ReduceOp::kBitXor)),
                         [](const auto& test) {
                           return NameOf(test.param.first) + std::string("_operator_") +
                                  std::to_string(test.param.second);
                         });

TEST_P(RefusedByNcclTest, IsRefusedWithASentence) {
  const DType dtype = GetParam().first;
  const ReduceOp op = GetParam().second;
  auto texts = OnGpus(2, [&](ProcessGroup& world) { return Compared(world, dtype, op); });
  EXPECT_THAT(texts,
              Each(HasSubstr(GetParam().second < ReduceOp::kBitAnd ? "NCCL does not reduce"
                                                                   : "NCCL has no operator")));
}

TEST(GpuTypesTest, EveryTypeIsMoved) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    std::string text;
    for (int number = 0; number < kDTypes; ++number) {
      auto dtype = static_cast<DType>(number);
      OnGpu<uint8_t> on_gpu(Bytes(dtype, world.group_rank()));
      Tensor tensor = on_gpu;
      tensor.dtype = dtype;
      tensor.count = kCount;
      world.Broadcast(tensor, GlobalRank{1});
      if (on_gpu.Read() != Bytes(dtype, 1)) text += std::string(NameOf(dtype)) + " ";
    }
    return text;
  });
  EXPECT_THAT(texts, Each(""));
}

}  // namespace
}  // namespace rankrun::comm
