// A libnvidia-ml.so.1 for tests. Environment variables set its answers:
//   FAKE_NVML_INIT   status of nvmlInit_v2, 0 if unset
//   FAKE_NVML_PCI    PCI buses of the GPUs, "65 bb", in hexadecimal

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kNotFound = 6;

std::vector<unsigned> Buses() {
  const char* text = std::getenv("FAKE_NVML_PCI");
  std::istringstream words(text == nullptr ? "" : text);
  std::vector<unsigned> buses;
  for (unsigned bus; words >> std::hex >> bus;) buses.push_back(bus);
  return buses;
}

// A handle is the index plus 1, plus 1000 for a MIG device.
constexpr size_t kMig = 1000;

}  // namespace

#define FAKE_API extern "C" __attribute__((visibility("default")))

FAKE_API int nvmlInit_v2() {
  const char* status = std::getenv("FAKE_NVML_INIT");
  return status == nullptr ? 0 : std::atoi(status);
}

FAKE_API int nvmlShutdown() { return 0; }

FAKE_API const char* nvmlErrorString(int status) {
  return status == kNotFound ? "Not Found" : "Driver/library version mismatch";
}

FAKE_API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(Buses().size());
  return 0;
}

FAKE_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= Buses().size()) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return 0;
}

// "GPU-fake-1" is GPU 1, and "MIG-fake-1" a part of it.
FAKE_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  std::string name = uuid;
  if (name.find("-fake-") == std::string::npos) return kNotFound;
  size_t handle = std::strtoul(name.c_str() + name.rfind('-') + 1, nullptr, 10) + 1;
  if (name.rfind("MIG-", 0) == 0) handle += kMig;
  *device = reinterpret_cast<void*>(handle);
  return 0;
}

FAKE_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* mig, void** device) {
  *device = reinterpret_cast<void*>(reinterpret_cast<size_t>(mig) - kMig);
  return 0;
}

struct PciInfo {
  char legacy_address[16];
  unsigned numbers[5];  // domain, bus, device and two more
  char address[32];
};

FAKE_API int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  std::vector<unsigned> buses = Buses();
  size_t index = reinterpret_cast<size_t>(device) - 1;
  if (index >= buses.size()) return kNotFound;
  std::memset(info, 0, sizeof *info);
  info->numbers[1] = buses[index];
  return 0;
}
