#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include <rankrun/backend_options.h>

#include "base/result.h"
#include "comm/nccl/nvidia.h"

// The CUDA runtime with results and owners.
namespace rankrun::comm::nccl {

// Returns kSystem, "<function>: <CUDA's words>", unless `status` is a success.
Result<void> Cuda(cudaError_t status, const char* function);

// Returns the number of GPUs of this process, at least 1.
// Error: kInvalid, there is none, with CUDA's reason; those of LoadNvidia.
Result<int> CountGpus();
// As CountGpus, without the number.
Result<void> FindGpus();

// Makes a GPU the current one of this thread until the end of the scope. Not by
// cudaSetDevice, because its call for the previous GPU would take memory there, if
// the process does not use that one.
class CurrentGpu {
 public:
  explicit CurrentGpu(int device);
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu();

  const Result<void>& entered() const { return entered_; }

 private:
  Result<void> entered_;
};

// Fails for a stream that is captured into a CUDA graph, because its work does not run.
// Errors: kInvalid, kSystem.
Result<void> CheckRuns(cudaStream_t stream);

// Event without time measurement, of the current GPU.
class Event {
 public:
  // Records the end of all work that is in `stream` now.
  static Result<Event> RecordedIn(cudaStream_t stream);
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event() {
    if (event_ != nullptr) static_cast<void>(Nvidia().cudaEventDestroy(event_));
  }

  // Returns whether the stream has reached the event. Permits other threads to capture
  // CUDA graphs.
  Result<bool> Test() const;
  // Lets later work in `stream` wait for the event.
  Result<void> WaitIn(cudaStream_t stream) const {
    return Cuda(Nvidia().cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  explicit Event(cudaEvent_t event) : event_(event) {}

  cudaEvent_t event_;
};

// Stream of the current GPU that does not wait for the default stream.
class Stream {
 public:
  // With the priority of `options`.
  static Result<Stream> Make(const NcclOptions& options);
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) static_cast<void>(Nvidia().cudaStreamDestroy(stream_));
  }

  cudaStream_t get() const { return stream_; }

 private:
  explicit Stream(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t stream_;
};

}  // namespace rankrun::comm::nccl
