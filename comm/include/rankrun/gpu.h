#pragma once

#include <memory>

#include <rankrun/export.h>
#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

// Calls on GPU memory: their streams, and memory that NCCL knows.

namespace rankrun {

// Chooses the CUDA stream (a cudaStream_t) for this thread's calls on GPU memory; null,
// which each thread begins with, means the default stream. Returns the previous one.
// A call enqueues the collective or message in the order of this stream and returns before
// it is complete, except BarrierOn; the first call of a kind may wait for other ranks.
// Errors appear in Work::WaitFor and in the next call. A refused collective breaks the
// group. Two ranks match their messages in the order of their calls; size, dtype and tag
// must be equal, and a receive names its source.
RANKRUN_API void* SetStream(void* stream);

// SetStream until the end of the scope:
//
//   rankrun::StreamScope scope(stream);
//   group.AllReduce(gradients);  // after the kernels in `stream`, before later ones
//
// Source: torch.cuda.stream.
class StreamScope {
 public:
  explicit StreamScope(void* stream) : previous_(SetStream(stream)) {}
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { SetStream(previous_); }

 private:
  void* const previous_;
};

// Memory of a GPU that a group uses again and again, such as its buckets of gradients.
// While this object exists, NCCL knows the memory and, where the GPUs' links permit it,
// moves it without buffers of its own. Register it on all ranks, and end this object
// when no call uses the memory.
//
//   RegisteredMemory registered(world, gradients);
//
// Thread: any. Source: ncclCommRegister; torch.distributed's register_mem_pool.
class RANKRUN_API RegisteredMemory {
 public:
  // The group must be connected on GPU memory, by InitOptions::device or a collective.
  // Throws DistError for memory that is not on a GPU or empty, and a group that is not
  // connected or cannot register memory; DistBackendError with NCCL's reason.
  RegisteredMemory(ProcessGroup& group, const Tensor& memory);

 private:
  std::shared_ptr<void> registration_;
};

}  // namespace rankrun
