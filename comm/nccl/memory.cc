#include "comm/nccl/memory.h"

#include "comm/nccl/cuda.h"
#include "comm/nccl/nvidia.h"

namespace rankrun::comm::nccl {
namespace {

Result<std::shared_ptr<void>> Allocate(int device, size_t bytes) {
  CurrentGpu gpu(device);
  if (!gpu.entered()) return gpu.entered().error();
  void* memory = nullptr;
  if (auto ok = Cuda(Nvidia().cudaMalloc(&memory, bytes), "cudaMalloc"); !ok) return ok.error();
  return std::shared_ptr<void>(memory,
                               [](void* last) { static_cast<void>(Nvidia().cudaFree(last)); });
}

Result<void> Copy(int device, std::span<const std::byte> from, void* to, void* stream,
                  cudaMemcpyKind kind) {
  CurrentGpu gpu(device);
  if (!gpu.entered()) return gpu.entered();
  auto* const in_order = static_cast<cudaStream_t>(stream);
  if (auto ok = CheckRuns(in_order); !ok) return ok;
  auto begun = Cuda(Nvidia().cudaMemcpyAsync(to, from.data(), from.size(), kind, in_order),
                    "cudaMemcpyAsync");
  if (!begun) return begun;
  return Cuda(Nvidia().cudaStreamSynchronize(in_order), "cudaStreamSynchronize");
}

Result<void> Read(int device, std::span<const std::byte> from, void* to, void* stream) {
  return Copy(device, from, to, stream, cudaMemcpyDeviceToHost);
}

Result<void> Write(int device, std::span<const std::byte> from, void* to, void* stream) {
  return Copy(device, from, to, stream, cudaMemcpyHostToDevice);
}

}  // namespace

const DeviceMemory& MemoryOfGpus() {
  static constexpr DeviceMemory kMemory{
      .count = &CountGpus, .allocate = &Allocate, .read = &Read, .write = &Write};
  return kMemory;
}

}  // namespace rankrun::comm::nccl
