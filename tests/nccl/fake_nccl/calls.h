#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/fake_nccl/mesh.h"

// Calls of the fake NCCL, which groups collect and streams carry out.
struct ncclComm {
  ncclComm(const std::string& id, int own_rank, int ranks)
      : name(id), rank(own_rank), size(ranks), mesh(id, own_rank, ranks) {}

  const std::string name;
  const int rank;
  const int size;
  rankrun::fake_nccl::Mesh mesh;
  std::atomic<ncclResult_t> status{ncclSuccess};
  std::thread background;  // what `status` waits for
  std::optional<cudaStream_t> last_stream;
  int splits = 0;                      // calls of ncclCommSplit
  std::vector<double> premul_factors;  // by operator, from ncclNumOps
};

#define FAKE_API extern "C" __attribute__((visibility("default")))
// Returns the error that a test has asked for.
#define FAIL_IF_ASKED() \
  if (int asked = fake_status_of(__func__); asked != 0) return static_cast<ncclResult_t>(asked)

namespace rankrun::fake_nccl {

// One call; a group has several.
struct Step {
  ncclComm* comm;
  cudaStream_t stream;
  bool is_message = false;
  std::vector<Out> outs = {};
  std::vector<In> ins = {};
  std::function<void()> before = [] {};
  std::function<void()> then = [] {};
};

// Enqueues the call, or adds it to the group that is open in this thread. As NCCL, a
// communicator takes no call while it works on another one in the background.
ncclResult_t Enqueue(Step step);

// Lets `work` run in the background, and shows its status on the communicator.
ncclResult_t RunInBackground(ncclComm* comm, std::function<ncclResult_t()> work);

}  // namespace rankrun::fake_nccl
