#include "comm/nccl/cuda.h"

#include <cuda.h>

#include <map>
#include <string>

#include "base/mutex.h"

namespace rankrun::comm::nccl {
namespace {

// Functions of the driver, whose library a program does not link. Each has the
// behaviour that it had in this version of CUDA.
constexpr unsigned kVersion = 12000;

template <typename Function>
Result<void> Find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  cudaError_t status = Nvidia().cudaGetDriverEntryPointByVersion(name, &address, kVersion,
                                                                 cudaEnableDefault, &found);
  if (auto ok = Cuda(status, "cudaGetDriverEntryPointByVersion"); !ok) return ok;
  if (found != cudaDriverEntryPointSuccess) {
    return Error{ErrorCode::kSystem, "the CUDA driver has no " + std::string(name)};
  }
  function = reinterpret_cast<Function>(address);
  return {};
}

struct Driver {
  CUresult (*retain)(CUcontext* context, CUdevice device) = nullptr;
  CUresult (*push)(CUcontext context) = nullptr;
  CUresult (*pop)(CUcontext* context) = nullptr;

  static Result<Driver> Make() {
    if (const auto& loaded = LoadNvidia(); !loaded) return loaded.error();
    Driver driver;
    if (auto ok = Find("cuDevicePrimaryCtxRetain", driver.retain); !ok) return ok.error();
    if (auto ok = Find("cuCtxPushCurrent", driver.push); !ok) return ok.error();
    if (auto ok = Find("cuCtxPopCurrent", driver.pop); !ok) return ok.error();
    return driver;
  }
};

const Result<Driver>& TheDriver() {
  static const auto* driver = new Result<Driver>(Driver::Make());
  return *driver;
}

// Contexts that the CUDA runtime uses, too. They are kept until the process ends.
class Contexts {
 public:
  Result<CUcontext> Of(const Driver& driver, int device) {
    MutexLock lock(mutex_);
    auto [place, is_new] = contexts_.emplace(device, nullptr);
    if (!is_new) return place->second;
    CUresult status = driver.retain(&place->second, device);
    if (status == CUDA_SUCCESS) return place->second;
    contexts_.erase(place);
    return Error{ErrorCode::kSystem,
                 "cuDevicePrimaryCtxRetain: error " + std::to_string(static_cast<int>(status))};
  }

 private:
  Mutex mutex_;
  std::map<int, CUcontext> contexts_ GUARDED_BY(mutex_);
};

Result<void> Enter(int device) {
  static auto* contexts = new Contexts;
  const Result<Driver>& driver = TheDriver();
  if (!driver) return driver.error();
  auto context = contexts->Of(*driver, device);
  if (!context) return std::move(context).error();
  CUresult status = driver->push(*context);
  if (status == CUDA_SUCCESS) return {};
  return Error{ErrorCode::kSystem,
               "cuCtxPushCurrent: error " + std::to_string(static_cast<int>(status))};
}

}  // namespace

CurrentGpu::CurrentGpu(int device) : entered_(Enter(device)) {}

CurrentGpu::~CurrentGpu() {
  CUcontext context = nullptr;
  if (entered_) static_cast<void>(TheDriver()->pop(&context));
}

Result<void> Cuda(cudaError_t status, const char* function) {
  if (status == cudaSuccess) return {};
  return Error{ErrorCode::kSystem,
               std::string(function) + ": " + Nvidia().cudaGetErrorString(status)};
}

Result<int> CountGpus() {
  if (const auto& loaded = LoadNvidia(); !loaded) return loaded.error();
  int count = 0;
  auto ok = Cuda(Nvidia().cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (ok && count > 0) return count;
  std::string why = ok ? "" : ": " + ok.error().message;
  return Error{ErrorCode::kInvalid, "this process has no GPU that CUDA can use" + why};
}

Result<void> FindGpus() {
  auto count = CountGpus();
  if (!count) return std::move(count).error();
  return {};
}

Result<Event> Event::RecordedIn(cudaStream_t stream) {
  cudaEvent_t handle = nullptr;
  auto made =
      Cuda(Nvidia().cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "cudaEventCreate");
  if (!made) return made.error();
  Event event(handle);
  if (auto ok = Cuda(Nvidia().cudaEventRecord(handle, stream), "cudaEventRecord"); !ok)
    return ok.error();
  return event;
}

Result<bool> Event::Test() const {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  auto relaxed = Cuda(Nvidia().cudaThreadExchangeStreamCaptureMode(&mode),
                      "cudaThreadExchangeStreamCaptureMode");
  if (!relaxed) return std::move(relaxed).error();
  cudaError_t status = Nvidia().cudaEventQuery(event_);
  static_cast<void>(Nvidia().cudaThreadExchangeStreamCaptureMode(&mode));
  if (status == cudaErrorNotReady) return false;
  if (auto ok = Cuda(status, "cudaEventQuery"); !ok) return ok.error();
  return true;
}

Result<void> CheckRuns(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  auto ok = Cuda(Nvidia().cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  if (!ok || status == cudaStreamCaptureStatusNone) return ok;
  return Error{ErrorCode::kInvalid,
               "the stream is captured into a CUDA graph: want one whose work runs at once"};
}

Result<Stream> Stream::Make(const NcclOptions& options) {
  constexpr int kNormal = 0;
  int lowest = 0, highest = 0;
  auto found = Cuda(Nvidia().cudaDeviceGetStreamPriorityRange(&lowest, &highest),
                    "cudaDeviceGetStreamPriorityRange");
  if (!found) return found.error();
  int number = options.high_priority_stream ? highest : kNormal;
  cudaStream_t handle = nullptr;
  auto made = Cuda(Nvidia().cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, number),
                   "cudaStreamCreateWithPriority");
  if (!made) return made.error();
  return Stream(handle);
}

}  // namespace rankrun::comm::nccl
