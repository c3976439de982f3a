// Tensors of other libraries without a copy. A matrix of another library
// arrives by DLPack, is summed over all ranks in place, and is handed to that
// library again. Each part begins with a MonitoredBarrier, whose error names a
// missing rank.
//
//   rankrun -n 4 handover

#include <dlpack/dlpack.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/dlpack.h>

// Stands for that library, which knows DLPack but not rankrun.
namespace other {

struct Matrix {
  std::vector<float> values;
  int64_t shape[2];
  DLManagedTensor managed;
};

int matrices = 0;  // number of live matrices

void Delete(DLManagedTensor* tensor) {
  delete static_cast<Matrix*>(tensor->manager_ctx);
  matrices -= 1;
}

// Creates a matrix with the values first, first + 1, ... The new owner calls
// its deleter.
DLManagedTensor* Make(int64_t rows, int64_t columns, float first) {
  auto* matrix = new Matrix{.values = {}, .shape = {rows, columns}, .managed = {}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    matrix->values.push_back(first + static_cast<float>(i));
  }
  DLTensor& tensor = matrix->managed.dl_tensor;
  tensor.data = matrix->values.data();
  tensor.device = {.device_type = kDLCPU, .device_id = 0};
  tensor.ndim = 2;
  tensor.dtype = {.code = kDLFloat, .bits = 32, .lanes = 1};
  tensor.shape = matrix->shape;
  matrix->managed.manager_ctx = matrix;
  matrix->managed.deleter = Delete;
  matrices += 1;
  return &matrix->managed;
}

// Takes ownership of a tensor. Returns whether its element i is first + i *
// step.
bool Holds(DLManagedTensor* taken, float first, float step) {
  const std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> owner(taken, taken->deleter);
  const DLTensor& tensor = taken->dl_tensor;
  const auto* values = static_cast<const float*>(tensor.data);
  bool holds = tensor.ndim == 2 && tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32;
  for (int64_t i = 0; holds && i < tensor.shape[0] * tensor.shape[1]; ++i) {
    holds = values[i] == first + static_cast<float>(i) * step;
  }
  return holds;
}

}  // namespace other

namespace {

constexpr int64_t kRows = 30;
constexpr int64_t kColumns = 40;
constexpr std::chrono::seconds kPatience{30};  // longest wait for a late rank

}  // namespace

int main() try {
  rankrun::ProcessGroup& world = rankrun::Init();
  int rank = world.global_rank();

  world.MonitoredBarrier(kPatience);
  std::shared_ptr<DLManagedTensor> matrix(other::Make(kRows, kColumns, static_cast<float>(rank)),
                                          [](DLManagedTensor* tensor) { tensor->deleter(tensor); });
  rankrun::Tensor view = rankrun::FromDLPack(*matrix);

  world.MonitoredBarrier(kPatience);
  world.AllReduce(view);

  world.MonitoredBarrier(kPatience);
  const void* memory = matrix->dl_tensor.data;
  DLManagedTensor* exported = rankrun::ToDLPack(view, std::move(matrix));
  bool good = exported->dl_tensor.data == memory;
  int size = world.world_size();
  int sum_of_ranks = size * (size - 1) / 2;
  good &= other::Holds(exported, static_cast<float>(sum_of_ranks), static_cast<float>(size));
  good &= other::matrices == 0;  // the last owner has released it
  std::printf("rank %d: %d matrices of %d x %d were summed: %s\n", rank, size,
              static_cast<int>(kRows), static_cast<int>(kColumns), good ? "right" : "WRONG");
  rankrun::Destroy();
  return good ? 0 : 1;
} catch (const rankrun::DistError& error) {
  std::fprintf(stderr, "handover: %s\n", error.what());
  return 1;
}
