#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

// Worlds whose ranks have GPUs of the fake CUDA runtime. Their memory is memory of the
// host, but its content is only defined in the order of streams.
namespace rankrun::comm {

// Values in memory of a GPU.
template <typename T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& values, int device = 0)
      : count_(values.size()), device_(device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), count_ * sizeof(T)), cudaSuccess);
    std::copy(values.begin(), values.end(), data_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  operator Tensor() const { return Part(0, count_); }
  operator ConstTensor() const { return Tensor(*this); }
  Tensor Part(size_t begin, size_t count) const {
    Tensor tensor(data_ + begin, DTypeOf<T>::kValue, count);
    tensor.device = {.type = DeviceType::kCuda, .index = device_};
    return tensor;
  }
  // Returns the values after all that is in the stream now.
  std::vector<T> Read(cudaStream_t stream = nullptr) const {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return std::vector<T>(data_, data_ + count_);
  }

 private:
  T* data_ = nullptr;
  const size_t count_;
  const int device_;
};

inline InitOptions WithGpus(const std::string& cpu_backend = "shm") {
  return {.timeout = std::chrono::seconds(60), .backend = "cpu:" + cpu_backend + ",cuda:nccl"};
}

// Runs `body` on ranks that have joined a world with GPUs. Returns the text of each.
inline std::vector<std::string> OnGpus(int world_size,
                                       const std::function<std::string(ProcessGroup&)>& body,
                                       const std::string& cpu_backend = "shm") {
  return OnRanks(world_size, [&](int rank) {
    SetHostFor(cpu_backend, rank);
    ProcessGroup& world = Init(WithGpus(cpu_backend));
    std::string text = body(world);
    Destroy();
    // A child's failures do not reach the test.
    return text + (testing::Test::HasFailure() ? "; an expectation has failed" : "");
  });
}

// Connects the ranks by a first call. CUDA may wait for all streams during it, so that a
// stream must not wait for the test then.
inline void ConnectGpus(ProcessGroup& world) {
  OnGpu<int32_t> one({1});
  world.AllReduce(one);
  one.Read();
}

// Returns the error that ends `work`.
inline std::string EndOf(const Work& work) {
  bool ended = false;
  std::string error = ErrorOf([&] { ended = work.WaitFor(std::chrono::minutes(1)); });
  return ended || error != "no error" ? error : "no end";
}

// Returns the error of a call, or that of its work.
inline std::string ErrorOfWork(const std::function<Work()>& call) {
  Work work;
  std::string error = ErrorOf([&] { work = call(); });
  return error == "no error" ? EndOf(work) : error;
}

}  // namespace rankrun::comm
