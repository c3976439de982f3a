#include "comm/nccl/nvidia.h"

#include <dlfcn.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace rankrun::comm::nccl {
namespace {

// A library by the names of its versions, the preferred one first, and the folders that have it
// in PyPI's packages.
struct Wanted {
  const char* title;
  std::span<const char* const> names;
  std::span<const char* const> folders;
};

constexpr std::array kRuntimeNames{"libcudart.so.13", "libcudart.so.12"};
constexpr std::array kRuntimeFolders{"cu13/lib", "cuda_runtime/lib"};
constexpr std::array kNcclNames{"libnccl.so.2"};
constexpr std::array kNcclFolders{"nccl/lib"};
constexpr Wanted kRuntime{"CUDA's runtime", kRuntimeNames, kRuntimeFolders};
constexpr Wanted kNccl{"NCCL", kNcclNames, kNcclFolders};

// Returns the folder of PyPI's packages of NVIDIA, beside the package rankrun whose folder lib
// has this plug-in.
std::string NvidiaOfPypi() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&LoadNvidia), &self) == 0 || self.dli_fname == nullptr) {
    return "";
  }
  const std::string path = self.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + "../../nvidia/";
}

// The version that the process has already, such as PyTorch's, wins over the loader's choice,
// and that over PyPI's.
Result<void*> Load(const Wanted& wanted) {
  for (const char* name : wanted.names) {
    if (void* found = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return found;
  }
  std::vector<std::string> places;
  for (const char* name : wanted.names) places.emplace_back(name);
  for (const char* folder : wanted.folders) {
    for (const char* name : wanted.names) places.push_back(NvidiaOfPypi() + folder + "/" + name);
  }
  std::string why;
  for (const std::string& place : places) {
    if (void* found = dlopen(place.c_str(), RTLD_NOW)) return found;
    const char* words = dlerror();
    why += (why.empty() ? "" : "; ") + std::string(words == nullptr ? place : words);
  }
  return Error{ErrorCode::kInvalid, "cannot load " + std::string(wanted.title) + ": " + why};
}

// Finds functions in a library until one is missing.
class Finder {
 public:
  Finder(const Wanted& wanted, void* library) : wanted_(wanted), library_(library) {}

  template <typename Function>
  void Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }

  Result<void> Check() const {
    if (missing_ == nullptr) return {};
    return Error{ErrorCode::kInvalid,
                 std::string(wanted_.title) + " is too old or too new: it has no " + missing_};
  }

 private:
  const Wanted& wanted_;
  void* library_;
  const char* missing_ = nullptr;
};

Result<void> FindRuntime(NvidiaFunctions& found) {
  auto library = Load(kRuntime);
  if (!library) return std::move(library).error();
  Finder in(kRuntime, *library);
  in.Find("cudaDeviceGetStreamPriorityRange", found.cudaDeviceGetStreamPriorityRange);
  in.Find("cudaEventCreateWithFlags", found.cudaEventCreateWithFlags);
  in.Find("cudaEventDestroy", found.cudaEventDestroy);
  in.Find("cudaEventQuery", found.cudaEventQuery);
  in.Find("cudaEventRecord", found.cudaEventRecord);
  in.Find("cudaFree", found.cudaFree);
  in.Find("cudaFreeAsync", found.cudaFreeAsync);
  in.Find("cudaGetDeviceCount", found.cudaGetDeviceCount);
  in.Find("cudaGetDriverEntryPointByVersion", found.cudaGetDriverEntryPointByVersion);
  in.Find("cudaGetErrorString", found.cudaGetErrorString);
  in.Find("cudaMalloc", found.cudaMalloc);
  in.Find("cudaMallocAsync", found.cudaMallocAsync);
  in.Find("cudaMemcpyAsync", found.cudaMemcpyAsync);
  in.Find("cudaStreamCreateWithPriority", found.cudaStreamCreateWithPriority);
  in.Find("cudaStreamDestroy", found.cudaStreamDestroy);
  in.Find("cudaStreamIsCapturing", found.cudaStreamIsCapturing);
  in.Find("cudaStreamSynchronize", found.cudaStreamSynchronize);
  in.Find("cudaStreamWaitEvent", found.cudaStreamWaitEvent);
  in.Find("cudaThreadExchangeStreamCaptureMode", found.cudaThreadExchangeStreamCaptureMode);
  return in.Check();
}

Result<void> FindNccl(NvidiaFunctions& found) {
  auto library = Load(kNccl);
  if (!library) return std::move(library).error();
  Finder in(kNccl, *library);
  in.Find("ncclAllGather", found.ncclAllGather);
  in.Find("ncclAllReduce", found.ncclAllReduce);
  in.Find("ncclBroadcast", found.ncclBroadcast);
  in.Find("ncclCommAbort", found.ncclCommAbort);
  in.Find("ncclCommDeregister", found.ncclCommDeregister);
  in.Find("ncclCommDestroy", found.ncclCommDestroy);
  in.Find("ncclCommFinalize", found.ncclCommFinalize);
  in.Find("ncclCommGetAsyncError", found.ncclCommGetAsyncError);
  in.Find("ncclCommInitRankConfig", found.ncclCommInitRankConfig);
  in.Find("ncclCommRegister", found.ncclCommRegister);
  in.Find("ncclCommSplit", found.ncclCommSplit);
  in.Find("ncclGetErrorString", found.ncclGetErrorString);
  in.Find("ncclGetLastError", found.ncclGetLastError);
  in.Find("ncclGetUniqueId", found.ncclGetUniqueId);
  in.Find("ncclGroupEnd", found.ncclGroupEnd);
  in.Find("ncclGroupStart", found.ncclGroupStart);
  in.Find("ncclRecv", found.ncclRecv);
  in.Find("ncclRedOpCreatePreMulSum", found.ncclRedOpCreatePreMulSum);
  in.Find("ncclRedOpDestroy", found.ncclRedOpDestroy);
  in.Find("ncclReduce", found.ncclReduce);
  in.Find("ncclReduceScatter", found.ncclReduceScatter);
  in.Find("ncclSend", found.ncclSend);
  return in.Check();
}

Result<NvidiaFunctions> FindAll() {
  NvidiaFunctions found{};
  if (auto ok = FindRuntime(found); !ok) return std::move(ok).error();
  if (auto ok = FindNccl(found); !ok) return std::move(ok).error();
  return found;
}

}  // namespace

const Result<NvidiaFunctions>& LoadNvidia() {
  static const auto* loaded = new Result<NvidiaFunctions>(FindAll());
  return *loaded;
}

const NvidiaFunctions& Nvidia() { return *LoadNvidia(); }

}  // namespace rankrun::comm::nccl
