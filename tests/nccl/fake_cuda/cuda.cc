// A libcudart.so.13 for tests on machines without a GPU. Memory of a device is
// memory of the host, and a stream is a thread. It has the functions that the NCCL
// plug-in and its tests call. Environment variable:
//   FAKE_CUDA_GPUS   number of GPUs, 8 if unset

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "tests/nccl/fake_cuda/stream.h"
#include "tests/nccl/fake_cuda/trace.h"

using rankrun::Mutex;
using rankrun::MutexLock;
using rankrun::fake_cuda::Mark;
using rankrun::fake_cuda::Stream;
using rankrun::fake_cuda::Trace;

struct CUstream_st {
  Stream stream;
  const std::string name;
};

struct CUevent_st {
  std::shared_ptr<Mark> mark;
};

namespace {

constexpr int kMaxGpus = 8;

int Gpus() {
  const char* text = std::getenv("FAKE_CUDA_GPUS");
  return text == nullptr ? kMaxGpus : std::atoi(text);
}

// Current devices of this thread: that of cudaSetDevice, and above it those of
// contexts that were pushed.
std::vector<int>& CurrentDevices() {
  thread_local std::vector<int> devices{0};
  return devices;
}

// Never destroyed, because threads may use it while the process ends.
struct Streams {
  Mutex mutex;
  std::set<CUstream_st*> all GUARDED_BY(mutex);
  CUstream_st* defaults[kMaxGpus] GUARDED_BY(mutex) = {};
};
Streams& TheStreams() {
  static auto* streams = new Streams;
  return *streams;
}

// Returns the stream behind a handle; each device has one default stream.
CUstream_st& StreamOf(cudaStream_t stream) {
  if (stream != nullptr) return *stream;
  Streams& streams = TheStreams();
  MutexLock lock(streams.mutex);
  CUstream_st*& standard = streams.defaults[CurrentDevices().back()];
  if (standard == nullptr) {
    standard = new CUstream_st{.stream = {}, .name = "the default stream"};
    streams.all.insert(standard);
  }
  return *standard;
}

// Waits until all streams have done their present work.
void AwaitStreams() {
  std::vector<std::shared_ptr<Mark>> marks;
  {
    MutexLock lock(TheStreams().mutex);
    for (CUstream_st* stream : TheStreams().all) marks.push_back(stream->stream.Record());
  }
  for (const auto& mark : marks) mark->Await();
}

cudaError_t StatusOf(const char* function) {
  return static_cast<cudaError_t>(fake_status_of(function));
}

// Contexts of the driver are numbers of devices, plus 1.
CUresult RetainContext(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device + 1));
  return CUDA_SUCCESS;
}

CUresult PushContext(CUcontext context) {
  CurrentDevices().push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
  return CUDA_SUCCESS;
}

CUresult PopContext(CUcontext*) {
  CurrentDevices().pop_back();
  return CUDA_SUCCESS;
}

}  // namespace

#define FAKE_API extern "C" __attribute__((visibility("default")))
// Returns the error that a test has asked for.
#define FAIL_IF_ASKED() \
  if (cudaError_t status = StatusOf(__func__); status != cudaSuccess) return status

FAKE_API const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "unknown error";
  }
}

FAKE_API cudaError_t cudaGetDeviceCount(int* count) {
  FAIL_IF_ASKED();
  *count = Gpus();
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

FAKE_API cudaError_t cudaSetDevice(int device) {
  FAIL_IF_ASKED();
  if (device < 0 || device >= Gpus()) return cudaErrorInvalidDevice;
  CurrentDevices().back() = device;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                      unsigned long long,
                                                      cudaDriverEntryPointQueryResult* found) {
  FAIL_IF_ASKED();
  *found = cudaDriverEntryPointSuccess;
  if (std::strcmp(name, "cuDevicePrimaryCtxRetain") == 0) {
    *function = reinterpret_cast<void*>(&RetainContext);
  } else if (std::strcmp(name, "cuCtxPushCurrent") == 0) {
    *function = reinterpret_cast<void*>(&PushContext);
  } else if (std::strcmp(name, "cuCtxPopCurrent") == 0) {
    *function = reinterpret_cast<void*>(&PopContext);
  } else {
    *found = cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

FAKE_API cudaError_t cudaMalloc(void** memory, size_t bytes) {
  FAIL_IF_ASKED();
  *memory = std::malloc(bytes == 0 ? 1 : bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// As CUDA's, it waits for all work that may use the memory.
FAKE_API cudaError_t cudaFree(void* memory) {
  AwaitStreams();
  std::free(memory);
  return cudaSuccess;
}

FAKE_API cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  FAIL_IF_ASKED();
  return cudaMalloc(memory, bytes);
}

FAKE_API cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  StreamOf(stream).stream.Push([memory] { std::free(memory); });
  return cudaSuccess;
}

FAKE_API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                     cudaStream_t stream) {
  FAIL_IF_ASKED();
  StreamOf(stream).stream.Push([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

FAKE_API cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  FAIL_IF_ASKED();
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

FAKE_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                  int priority) {
  FAIL_IF_ASKED();
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  if (priority != 0) Trace("make a stream of priority " + std::to_string(priority));
  *stream = new CUstream_st{.stream = {}, .name = "a stream"};
  MutexLock lock(TheStreams().mutex);
  TheStreams().all.insert(*stream);
  return cudaSuccess;
}

FAKE_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    MutexLock lock(TheStreams().mutex);
    TheStreams().all.erase(stream);
  }
  delete stream;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAIL_IF_ASKED();
  StreamOf(stream).stream.Record()->Await();
  return cudaSuccess;
}

FAKE_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FAIL_IF_ASKED();
  Trace(StreamOf(stream).name + " waits for an event");
  if (event->mark) StreamOf(stream).stream.Push([mark = event->mark] { mark->Await(); });
  return cudaSuccess;
}

FAKE_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                        void* argument) {
  FAIL_IF_ASKED();
  StreamOf(stream).stream.Push([=] { function(argument); });
  return cudaSuccess;
}

FAKE_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  FAIL_IF_ASKED();
  *event = new CUevent_st;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace("record an event in " + StreamOf(stream).name);
  event->mark = StreamOf(stream).stream.Record();
  return cudaSuccess;
}

FAKE_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  FAIL_IF_ASKED();
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  return cudaSuccess;
}

// A test asks for a capture by a status.
FAKE_API cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  bool captures = fake_status_of(__func__) != 0;
  *status = captures ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAIL_IF_ASKED();
  bool reached = event->mark == nullptr || event->mark->is_reached();
  return reached ? cudaSuccess : cudaErrorNotReady;
}
