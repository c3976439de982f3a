#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/clock.h"

namespace rankrun::comm {

// Stream of a program, with a kernel that ends when the test wants it.
class GatedStream {
 public:
  GatedStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    auto wait = [](void* gate) { static_cast<std::promise<void>*>(gate)->get_future().wait(); };
    EXPECT_EQ(cudaLaunchHostFunc(stream_, wait, &gate_), cudaSuccess);
  }
  GatedStream(const GatedStream&) = delete;
  GatedStream& operator=(const GatedStream&) = delete;
  ~GatedStream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  void Open() { gate_.set_value(); }
  cudaStream_t get() const { return stream_; }
  // Returns whether the stream gets to its end within `limit`.
  bool IsEmpty(std::chrono::milliseconds limit = std::chrono::milliseconds(20)) const {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
    auto deadline = MonotonicClock().Now() + limit;
    bool reached = false;
    while (!reached && MonotonicClock().Now() < deadline) {
      reached = cudaEventQuery(event) == cudaSuccess;
      std::this_thread::yield();
    }
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    return reached;
  }

 private:
  std::promise<void> gate_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace rankrun::comm
