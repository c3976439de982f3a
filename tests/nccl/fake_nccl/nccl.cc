// A libnccl.so.2 for tests on machines without a GPU: it moves data between
// processes, and its calls take effect in streams of the fake CUDA runtime. All
// communicators are non-blocking. This file has their life, and groups.

#include <nccl.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "tests/comm/reduce/naive_reduction.h"
#include "tests/nccl/fake_nccl/calls.h"

using rankrun::Mutex;
using rankrun::MutexLock;
using rankrun::fake_cuda::Trace;
using rankrun::fake_nccl::In;
using rankrun::fake_nccl::Mesh;
using rankrun::fake_nccl::Out;
using rankrun::fake_nccl::RunInBackground;
using rankrun::fake_nccl::Step;

namespace {

struct Group {
  int depth = 0;
  std::vector<Step> steps;
};
thread_local Group group;

// Runs the steps of a group: the messages at once, then each collective.
void Run(const std::vector<Step>& steps) {
  std::vector<Out> outs;
  std::vector<In> ins;
  Mesh& mesh = steps.front().comm->mesh;
  for (const Step& step : steps) {
    if (!step.is_message) continue;
    outs.insert(outs.end(), step.outs.begin(), step.outs.end());
    ins.insert(ins.end(), step.ins.begin(), step.ins.end());
  }
  if (!mesh.Exchange(outs, ins)) return;
  for (const Step& step : steps) {
    if (step.is_message) continue;
    step.before();
    if (!mesh.Exchange(step.outs, step.ins)) return;
    step.then();
  }
}

ncclResult_t Launch(std::vector<Step> steps) {
  if (steps.empty()) return ncclSuccess;
  ncclComm* comm = steps.front().comm;
  if (comm->status != ncclSuccess) return ncclInvalidUsage;
  comm->last_stream = steps.front().stream;
  if (fake_stalls("ncclGroupEnd")) {
    return RunInBackground(comm, [comm] {
      comm->mesh.AwaitAbort();
      return ncclInternalError;
    });
  }
  return RunInBackground(comm, [steps = std::move(steps)] {
    cudaStream_t stream = steps.front().stream;
    auto* task = new std::function<void()>([steps] { Run(steps); });
    auto run = [](void* argument) {
      std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(argument));
      (*owned)();
    };
    bool launched = cudaLaunchHostFunc(stream, run, task) == cudaSuccess;
    return launched ? ncclSuccess : ncclUnhandledCudaError;
  });
}

double ScalarOf(const void* scalar, ncclDataType_t type) {
  namespace naive = rankrun::comm::naive;
  switch (type) {
    case ncclFloat64:
      return *static_cast<const double*>(scalar);
    case ncclFloat32:
      return *static_cast<const float*>(scalar);
    case ncclFloat16:
      return naive::ValueOf(naive::kHalf, *static_cast<const uint16_t*>(scalar));
    default:
      return naive::ValueOf(naive::kBrain, *static_cast<const uint16_t*>(scalar));
  }
}

// Keeps aborted communicators, because streams may still use them.
void Keep(ncclComm* comm) {
  static auto* mutex = new Mutex;
  static auto* kept = new std::vector<ncclComm*>;
  MutexLock lock(*mutex);
  kept->push_back(comm);
}

struct ColorAndKey {
  int color;
  int key;
};

// Makes a communicator of the ranks with this color, in the order of their keys, once all
// ranks of `comm` have told both.
ncclResult_t SplitInBackground(ncclComm* comm, int color, int key, ncclComm_t* made) {
  const ColorAndKey mine{color, key};
  std::vector<ColorAndKey> all(static_cast<size_t>(comm->size));
  std::vector<Out> outs;
  std::vector<In> ins;
  for (int r = 0; r < comm->size; ++r) {
    outs.push_back({r, reinterpret_cast<const char*>(&mine), sizeof mine});
    ins.push_back({r, reinterpret_cast<char*>(&all[static_cast<size_t>(r)]), sizeof mine});
  }
  if (!comm->mesh.Exchange(outs, ins)) return ncclInternalError;
  const std::string name =
      comm->name + "_" + std::to_string(comm->splits++) + "_" + std::to_string(color);
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  int rank = 0, size = 0;
  for (const ColorAndKey& each : all) {
    if (each.color != color) continue;
    size += 1;
    if (each.key < key) rank += 1;
  }
  auto child = std::make_unique<ncclComm>(name, rank, size);
  if (!child->mesh.Connect()) return ncclInternalError;
  std::atomic_ref<ncclComm_t>(*made).store(child.release());
  return ncclSuccess;
}

std::string CtasOf(const ncclConfig_t& config) {
  std::string text;
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT)
    text += ", min " + std::to_string(config.minCTAs) + " CTAs";
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT)
    text += ", max " + std::to_string(config.maxCTAs) + " CTAs";
  return text;
}

}  // namespace

namespace rankrun::fake_nccl {

ncclResult_t Enqueue(Step step) {
  if (group.depth > 0) {
    group.steps.push_back(std::move(step));
    return ncclSuccess;
  }
  std::vector<Step> steps;
  steps.push_back(std::move(step));
  return Launch(std::move(steps));
}

ncclResult_t RunInBackground(ncclComm* comm, std::function<ncclResult_t()> work) {
  if (comm->background.joinable()) comm->background.join();
  comm->status = ncclInProgress;
  comm->background = std::thread([comm, work = std::move(work)] { comm->status = work(); });
  return ncclInProgress;
}

}  // namespace rankrun::fake_nccl

FAKE_API const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclSystemError:
      return "unhandled system error";
    default:
      return "internal error";
  }
}

FAKE_API const char* ncclGetLastError(ncclComm_t) { return ""; }

FAKE_API ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  FAIL_IF_ASKED();
  static std::atomic<int> next{0};
  std::string name = "fake_nccl_" + std::to_string(getpid()) + "_" + std::to_string(next++);
  *id = {};
  std::memcpy(id->internal, name.c_str(), name.size() + 1);
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                             ncclConfig_t* config) {
  FAIL_IF_ASKED();
  if (config->blocking != 0) return ncclInvalidUsage;
  // As NCCL: an absent maximum is less than any minimum.
  if (config->minCTAs > config->maxCTAs) return ncclInvalidArgument;
  Trace("init rank " + std::to_string(rank) + " of " + std::to_string(size) + " of " +
        config->commName + CtasOf(*config));
  *comm = new ncclComm(id.internal, rank, size);
  ncclComm* made = *comm;
  return RunInBackground(made,
                         [made] { return made->mesh.Connect() ? ncclSuccess : ncclInternalError; });
}

FAKE_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                                    ncclConfig_t* config) {
  FAIL_IF_ASKED();
  if (config->blocking != 0 || comm->status != ncclSuccess) return ncclInvalidUsage;
  Trace("split by color " + std::to_string(color) +
        (color < 0 ? "" : " of " + std::string(config->commName) + CtasOf(*config)));
  if (fake_stalls("ncclCommSplit")) {
    return RunInBackground(comm, [comm] {
      comm->mesh.AwaitAbort();
      return ncclInternalError;
    });
  }
  return RunInBackground(comm, [=] { return SplitInBackground(comm, color, key, made); });
}

FAKE_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
  FAIL_IF_ASKED();
  *status = comm->status;
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Trace("finalize");
  return RunInBackground(comm, [] { return ncclSuccess; });
}

FAKE_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Trace("destroy");
  if (comm->background.joinable()) comm->background.join();
  delete comm;
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Trace("abort");
  comm->mesh.Abort();
  if (comm->background.joinable()) comm->background.join();
  // As NCCL, it waits for kernels of the program that are before its own.
  if (comm->last_stream) static_cast<void>(cudaStreamSynchronize(*comm->last_stream));
  comm->status = ncclInternalError;
  Keep(comm);
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                               ncclScalarResidence_t, ncclComm_t comm) {
  FAIL_IF_ASKED();
  comm->premul_factors.push_back(ScalarOf(scalar, type));
  *op = static_cast<ncclRedOp_t>(ncclNumOps + comm->premul_factors.size() - 1);
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

FAKE_API ncclResult_t ncclCommRegister(ncclComm_t, void* data, size_t bytes, void** handle) {
  FAIL_IF_ASKED();
  Trace("register " + std::to_string(bytes) + " bytes");
  *handle = data;
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclCommDeregister(ncclComm_t, void*) {
  Trace("deregister");
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclGroupStart() {
  group.depth += 1;
  return ncclSuccess;
}

FAKE_API ncclResult_t ncclGroupEnd() {
  bool is_over = --group.depth == 0;
  auto steps = is_over ? std::exchange(group.steps, {}) : std::vector<Step>();
  FAIL_IF_ASKED();
  return Launch(std::move(steps));
}
