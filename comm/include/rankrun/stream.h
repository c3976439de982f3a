#pragma once

#include <rankrun/export.h>

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

}  // namespace rankrun
