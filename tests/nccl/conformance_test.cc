// The vectors of collectives on GPU memory.

#include "tests/comm/conformance.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<const Json*> VectorsOfCollectives() {
  std::vector<const Json*> vectors;
  for (const Json& vector : Vectors()) {
    if (CollectiveRuns().contains(vector.at("op"))) vectors.push_back(&vector);
  }
  return vectors;
}

std::string NameOf(const testing::TestParamInfo<const Json*>& info) {
  auto name = info.param->at("id").get<std::string>();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Returns whether NCCL has no such reduction.
bool IsRefused(const Json& vector) {
  auto op = vector.value("reduce", "");
  return op == "BAND" || op == "BOR" || op == "BXOR" ||
         (op != "" && vector.value("dtype", "") == "bool");
}

struct GpuConformanceTest : testing::TestWithParam<const Json*> {};
INSTANTIATE_TEST_SUITE_P(Vectors, GpuConformanceTest, testing::ValuesIn(VectorsOfCollectives()),
                         NameOf);

TEST_P(GpuConformanceTest, Vector) {
  const Json& vector = *GetParam();
  ThePlaceOfElements() = {
      .device = {.type = DeviceType::kCuda},
      .await = [] { EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess); },
  };
  auto texts = OnGpus(vector.at("W"), [&](ProcessGroup& world) {
    return CollectiveRuns().at(vector.at("op"))(world, vector);
  });
  if (IsRefused(vector)) {
    EXPECT_THAT(texts, Each(HasSubstr("NCCL ")));
  } else {
    EXPECT_THAT(texts, Each(""));
  }
}

}  // namespace
}  // namespace rankrun::comm
