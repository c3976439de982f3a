// The vectors of collectives on GPU memory.

#include "tests/comm/conformance.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

// Returns null for a vector without tensors, or of messages that NCCL does not have:
// from any rank, of a rank to itself, and in another order than they are sent.
VectorRun RunOf(const Json& vector) {
  static const std::set<std::string> kAbsent{"rank_translation", "recv_any", "isend_irecv_self",
                                             "send_tags"};
  for (const auto* runs : {&CollectiveRuns(), &MessageRuns()}) {
    auto run = runs->find(vector.at("op"));
    if (run != runs->end() && !kAbsent.contains(run->first)) return run->second;
  }
  return nullptr;
}

// Memory of the first GPU.
class GpuMemory final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
  }
  void do_deallocate(void* memory, size_t, size_t) override {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

std::vector<const Json*> VectorsOfTensors() {
  std::vector<const Json*> vectors;
  for (const Json& vector : Vectors()) {
    if (RunOf(vector) != nullptr) vectors.push_back(&vector);
  }
  return vectors;
}

std::string NameOf(const testing::TestParamInfo<const Json*>& info) {
  auto name = info.param->at("id").get<std::string>();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Returns a part of the error of what NCCL cannot do; empty: it can.
std::string RefusalOf(const Json& vector) {
  auto op = vector.value("reduce", "");
  bool is_no_reduction = op == "BAND" || op == "BOR" || op == "BXOR" ||
                         (op != "" && vector.value("dtype", "") == "bool");
  if (is_no_reduction) return "NCCL ";
  return "";
}

struct GpuConformanceTest : testing::TestWithParam<const Json*> {};
INSTANTIATE_TEST_SUITE_P(Vectors, GpuConformanceTest, testing::ValuesIn(VectorsOfTensors()),
                         NameOf);

TEST_P(GpuConformanceTest, Vector) {
  const Json& vector = *GetParam();
  GpuMemory memory;
  std::pmr::set_default_resource(&memory);
  ThePlaceOfElements() = {
      .device = {.type = DeviceType::kCuda},
      .await = [] { EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess); },
  };
  auto texts = OnGpus(vector.at("W"), [&](ProcessGroup& world) {
    std::string text;
    std::string error = ErrorOf([&] { text = RunOf(vector)(world, vector); });
    return error == "no error" ? text : error;
  });
  const std::string refusal = RefusalOf(vector);
  if (refusal.empty()) {
    EXPECT_THAT(texts, Each(""));
  } else {
    EXPECT_THAT(texts, Each(HasSubstr(refusal)));
  }
}

}  // namespace
}  // namespace rankrun::comm
