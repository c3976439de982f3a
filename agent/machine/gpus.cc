#include "agent/machine/gpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/machine/nvml.h"
#include "base/parse_number.h"

namespace rankrun::agent {
namespace {

// Returns the PCI addresses of the GPUs that the kernel driver lists, in order.
std::vector<std::string> AddressesInProc(const std::string& proc) {
  std::vector<std::string> addresses;
  std::error_code none;  // without a driver the folder does not exist
  for (const auto& entry :
       std::filesystem::directory_iterator(proc + "/driver/nvidia/gpus", none)) {
    addresses.push_back(entry.path().filename());
  }
  std::ranges::sort(addresses);
  return addresses;
}

Result<size_t> CountGpus(const std::string& proc) {
  auto nvml = Nvml::Open();
  if (!nvml && nvml.error().code == ErrorCode::kNotFound) return AddressesInProc(proc).size();
  if (!nvml) return std::move(nvml).error().In("count GPUs");
  auto count = (*nvml)->Count();
  if (!count) return std::move(count).error().In("count GPUs");
  return static_cast<size_t>(*count);
}

Error NoSuchGpu(const std::string& gpu) {
  return Error{ErrorCode::kInvalid, "there is no GPU " + gpu};
}

Result<std::vector<std::string>> PciAddresses(const std::vector<std::string>& gpus,
                                              const std::string& proc) {
  auto nvml = Nvml::Open();
  if (!nvml && nvml.error().code != ErrorCode::kNotFound) return std::move(nvml).error();
  std::vector<std::string> in_proc;
  if (!nvml) in_proc = AddressesInProc(proc);
  if (!nvml && in_proc.empty()) return in_proc;
  std::vector<std::string> addresses;
  for (const std::string& gpu : gpus) {
    if (nvml) {
      auto address = (*nvml)->PciAddress(gpu);
      bool missing = !address && address.error().code == ErrorCode::kNotFound;
      if (missing) return NoSuchGpu(gpu);
      if (!address) return std::move(address).error();
      addresses.push_back(*address);
      continue;
    }
    auto index = ParseNumber<size_t>(gpu);
    if (!index || *index >= in_proc.size()) return NoSuchGpu(gpu);
    addresses.push_back(in_proc[*index]);
  }
  return addresses;
}

}  // namespace

bool IsGpu(std::string_view entry) {
  return ParseNumber<size_t>(entry) || entry.starts_with("GPU-") || entry.starts_with("MIG-");
}

std::vector<std::string> ParseVisibleDevices(std::string_view list) {
  std::vector<std::string> gpus;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    std::string_view entry = list.substr(begin, end - begin);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (!IsGpu(entry)) break;
    if (std::ranges::find(gpus, entry) != gpus.end()) return {};
    gpus.emplace_back(entry);
    begin = end + 1;
  }
  return gpus;
}

Result<std::vector<std::string>> VisibleGpus(const std::optional<std::string>& cuda_visible_devices,
                                             const std::string& proc) {
  if (cuda_visible_devices) return ParseVisibleDevices(*cuda_visible_devices);
  auto count = CountGpus(proc);
  if (!count) return std::move(count).error();
  std::vector<std::string> gpus;
  for (size_t i = 0; i < *count; ++i) gpus.push_back(std::to_string(i));
  return gpus;
}

Result<std::vector<int>> GpuNumaNodes(const std::vector<std::string>& gpus, const std::string& proc,
                                      const std::string& sys) {
  auto addresses = PciAddresses(gpus, proc);
  if (!addresses) return std::move(addresses).error();
  std::vector<int> nodes;
  for (const std::string& address : *addresses) {
    int node = 0;
    std::ifstream(sys + "/bus/pci/devices/" + address + "/numa_node") >> node;
    nodes.push_back(std::max(0, node));  // -1: unknown to the firmware
  }
  return nodes;
}

}  // namespace rankrun::agent
