#include "comm/world/device_map.h"

#include <algorithm>
#include <utility>

#include "comm/world/backend_table.h"

namespace rankrun::comm {
namespace {

constexpr char kCpu[] = "cpu";
constexpr char kCuda[] = "cuda";

Error InvalidMap(const std::string& text, const std::string& why) {
  return {ErrorCode::kInvalid, "backend is \"" + text + "\": " + why};
}

}  // namespace

Result<DeviceMap> ParseDeviceMap(const std::string& text) {
  if (text == kNcclBackend) return DeviceMap{.cpu = kAutoBackend, .cuda = kNcclBackend};
  if (text.find_first_of(":,") == std::string::npos) return DeviceMap{.cpu = text};
  DeviceMap map;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    size_t colon = entry.find(':');
    std::string device = entry.substr(0, colon);
    std::string backend = colon == std::string::npos ? "" : entry.substr(colon + 1);
    if (device.empty() || backend.empty() || backend.find(':') != std::string::npos) {
      return InvalidMap(text, "want one name, such as shm, or DEVICE:BACKEND, such as cpu:shm");
    }
    if (device != kCpu && device != kCuda) {
      return InvalidMap(text, "there is no device " + device + ": want cpu or cuda");
    }
    std::string& place = device == kCpu ? map.cpu : map.cuda;
    if (!place.empty()) return InvalidMap(text, device + " occurs twice");
    place = backend;
  }
  if (map.cpu.empty()) map.cpu = kAutoBackend;
  return map;
}

Result<std::string> DefaultBackendFor(const std::string& device) {
  size_t colon = device.find(':');
  std::string type = device.substr(0, colon);
  std::string index = colon == std::string::npos ? "0" : device.substr(colon + 1);
  bool has_index = !index.empty() && index.find_first_not_of("0123456789") == std::string::npos;
  if (has_index && type == kCpu) return std::string(kAutoBackend);
  if (has_index && type == kCuda) return std::string(kNcclBackend);
  return Error{ErrorCode::kInvalid,
               "no backend for the device \"" + device + "\": want cpu, cuda or cuda:INDEX"};
}

bool HasGpus(const std::string& name) {
  auto map = ParseDeviceMap(name);
  return map && !map->cuda.empty();
}

Result<void> CheckNcclOptions(const NcclOptions& options, const DeviceMap& map) {
  auto invalid = [](const std::string& message) {
    return Error{ErrorCode::kInvalid, "options of NCCL: " + message};
  };
  if (options == NcclOptions()) return {};
  if (map.cuda != kNcclBackend) {
    return invalid("the backend is \"" + FormatDeviceMap(map) +
                   "\": want one with nccl, such as \"cpu:auto,cuda:nccl\"");
  }
  auto check = [&](const char* name, int number) -> Result<void> {
    if (number >= 0) return {};
    return invalid(name + std::string(" is ") + std::to_string(number) +
                   ": want at least 1, or 0 for NCCL's choice");
  };
  if (auto ok = check("min_ctas", options.min_ctas); !ok) return ok;
  if (auto ok = check("max_ctas", options.max_ctas); !ok) return ok;
  if (options.max_ctas == 0 || options.min_ctas <= options.max_ctas) return {};
  return invalid("min_ctas is " + std::to_string(options.min_ctas) + ": want at most max_ctas, " +
                 std::to_string(options.max_ctas));
}

std::string InWords(const BackendWish& wish) {
  std::string text = "backend " + wish.name;
  auto add = [&](const std::string& option) {
    text += (text.find(" with ") == std::string::npos ? " with " : " and ") + option;
  };
  if (wish.nccl.high_priority_stream) add("a high-priority stream");
  if (wish.nccl.min_ctas != 0) add("min_ctas " + std::to_string(wish.nccl.min_ctas));
  if (wish.nccl.max_ctas != 0) add("max_ctas " + std::to_string(wish.nccl.max_ctas));
  return text;
}

std::string FormatDeviceMap(const DeviceMap& map) {
  // The name alone would mean GPUs.
  if (map.cuda.empty() && map.cpu == kNcclBackend) return std::string(kCpu) + ":" + map.cpu;
  if (map.cuda.empty()) return map.cpu;
  return std::string(kCpu) + ":" + map.cpu + "," + kCuda + ":" + map.cuda;
}

}  // namespace rankrun::comm
