#include "comm/world/device_map.h"

#include <algorithm>
#include <utility>

namespace rankrun::comm {
namespace {

constexpr char kCpu[] = "cpu";
constexpr char kCuda[] = "cuda";

Error InvalidMap(const std::string& text, const std::string& why) {
  return {ErrorCode::kInvalid, "backend is \"" + text + "\": " + why};
}

}  // namespace

Result<DeviceMap> ParseDeviceMap(const std::string& text) {
  if (text.find_first_of(":,") == std::string::npos) return DeviceMap{{kCpu, text}};
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
    if (!map.emplace(device, backend).second) return InvalidMap(text, device + " occurs twice");
  }
  return map;
}

Result<std::string> CpuBackend(const std::string& text) {
  auto map = ParseDeviceMap(text);
  if (!map) return std::move(map).error();
  if (map->contains(kCuda)) {
    return InvalidMap(text,
                      "this librankrun has no backend for cuda, and refuses tensors in GPU memory: "
                      "want one for cpu alone, such as cpu:shm");
  }
  return map->at(kCpu);
}

}  // namespace rankrun::comm
