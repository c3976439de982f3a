#include "agent/machine/nvml.h"

#include <dlfcn.h>

#include <cstdio>

#include "base/parse_number.h"

namespace rankrun::agent {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

// Values of nvmlReturn_t.
constexpr int kSuccess = 0;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;
constexpr int kFunctionMissing = 13;

using Device = void*;  // nvmlDevice_t

// nvmlPciInfo_t of version 3.
struct PciInfo {
  char legacy_address[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char address[32];
};

using Init = int();
using Shutdown = int();
using ErrorText = const char*(int);
using GetCount = int(unsigned*);
using HandleByIndex = int(unsigned, Device*);
using HandleByUuid = int(const char*, Device*);
using ParentOfMig = int(Device, Device*);
using GetPciInfo = int(Device, PciInfo*);

}  // namespace

template <typename Function>
Function* Nvml::Find(const char* symbol) const {
  return reinterpret_cast<Function*>(dlsym(library_, symbol));
}

Error Nvml::Failure(const std::string& what, int status) const {
  auto* text = Find<ErrorText>("nvmlErrorString");
  std::string cause = text != nullptr ? text(status) : "error " + std::to_string(status);
  bool missing = status == kNotFound || status == kDriverNotLoaded;
  return Error{missing ? ErrorCode::kNotFound : ErrorCode::kSystem,
               std::string(kLibrary) + ": " + what + ": " + cause};
}

Result<std::unique_ptr<Nvml>> Nvml::Open() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorCode::kNotFound, "no library " + std::string(kLibrary)};
  }
  std::unique_ptr<Nvml> nvml(new Nvml(library));
  auto* init = nvml->Find<Init>("nvmlInit_v2");
  int status = init != nullptr ? init() : kFunctionMissing;
  if (status != kSuccess) return nvml->Failure("nvmlInit_v2", status);
  nvml->ready_ = true;
  return nvml;
}

Nvml::~Nvml() {
  if (auto* shutdown = Find<Shutdown>("nvmlShutdown"); ready_ && shutdown != nullptr) shutdown();
  dlclose(library_);
}

Result<int> Nvml::Count() const {
  unsigned count = 0;
  auto* get = Find<GetCount>("nvmlDeviceGetCount_v2");
  int status = get != nullptr ? get(&count) : kFunctionMissing;
  if (status != kSuccess) return Failure("nvmlDeviceGetCount_v2", status);
  return static_cast<int>(count);
}

Result<std::string> Nvml::PciAddress(const std::string& gpu) const {
  auto* by_index = Find<HandleByIndex>("nvmlDeviceGetHandleByIndex_v2");
  auto* by_uuid = Find<HandleByUuid>("nvmlDeviceGetHandleByUUID");
  auto* parent = Find<ParentOfMig>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  auto* pci = Find<GetPciInfo>("nvmlDeviceGetPciInfo_v3");
  Device device = nullptr;
  int status = kFunctionMissing;
  auto index = ParseNumber<unsigned>(gpu);
  if (index && by_index != nullptr) status = by_index(*index, &device);
  if (!index && by_uuid != nullptr) status = by_uuid(gpu.c_str(), &device);
  if (status == kSuccess && gpu.starts_with("MIG-") && parent != nullptr) {
    status = parent(device, &device);
  }
  PciInfo info{};
  if (status == kSuccess) status = pci != nullptr ? pci(device, &info) : kFunctionMissing;
  if (status != kSuccess) return Failure("GPU " + gpu, status);
  char address[32];
  std::snprintf(address, sizeof address, "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
  return std::string(address);
}

}  // namespace rankrun::agent
