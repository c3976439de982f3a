#include "comm/rpc/device_maps.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "comm/rpc/roster.h"

namespace rankrun::comm::rpc {
namespace {

using Json = nlohmann::json;
using Key = std::pair<int, int>;

Key KeyOf(const Device& device) { return {static_cast<int>(device.type), device.index}; }

bool Contains(const std::vector<Device>& devices, const Device& device) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

bool IsOn(const Device& device, int gpus) {
  if (device.type == DeviceType::kCpu) return true;
  return device.type == DeviceType::kCuda && device.index >= 0 && device.index < gpus;
}

bool HasDuplicates(const std::vector<Device>& devices) {
  std::set<Key> seen;
  for (const Device& device : devices) {
    if (!seen.insert(KeyOf(device)).second) return true;
  }
  return false;
}

std::string ListOf(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) text += (text.empty() ? "" : ", ") + InWords(device);
  return text;
}

std::string GpusInWords(int gpus) {
  if (gpus == 0) return "no GPU";
  return gpus == 1 ? "cuda:0" : "cuda:0.." + std::to_string(gpus - 1);
}

std::vector<Device> SourcesOf(const DevicePairs& map) {
  std::vector<Device> devices;
  for (const auto& [from, to] : map) devices.push_back(from);
  return devices;
}

std::vector<Device> TargetsOf(const DevicePairs& map) {
  std::vector<Device> devices;
  for (const auto& [from, to] : map) devices.push_back(to);
  return devices;
}

Error Invalid(const WorkerDevices& worker, const std::string& text) {
  return {ErrorCode::kInvalid, "worker " + worker.worker + " has " + text};
}

const WorkerDevices* Find(const std::vector<WorkerDevices>& workers, const std::string& name) {
  auto found = std::find_if(workers.begin(), workers.end(),
                            [&](const WorkerDevices& each) { return each.worker == name; });
  return found == workers.end() ? nullptr : &*found;
}

Result<void> CheckDevices(const WorkerDevices& worker) {
  if (HasDuplicates(worker.devices)) {
    return Invalid(worker, "a device twice: " + ListOf(worker.devices));
  }
  for (const Device& device : worker.devices) {
    if (IsOn(device, worker.gpus)) continue;
    return Invalid(worker, "the device " + InWords(device) + " in its list, but has " +
                               GpusInWords(worker.gpus));
  }
  return {};
}

// Checks one end of a map, whose devices are those of `worker`: "the source cuda:2 ...".
Result<void> CheckEnd(const WorkerDevices& owner, const std::string& callee,
                      const WorkerDevices& worker, const std::string& end,
                      const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    const std::string text =
        "the " + end + " " + InWords(device) + " in its device map for " + callee + ", but ";
    if (!worker.devices.empty() && !Contains(worker.devices, device)) {
      return Invalid(owner, text + worker.worker + " uses " + ListOf(worker.devices) + " only");
    }
    if (worker.devices.empty() && !IsOn(device, worker.gpus)) {
      return Invalid(owner, text + worker.worker + " has " + GpusInWords(worker.gpus));
    }
  }
  return {};
}

Result<void> CheckMap(const WorkerDevices& worker, const std::string& callee,
                      const DevicePairs& map, const WorkerDevices* target) {
  if (auto ok = CheckOneToOne(map); !ok) {
    return Invalid(worker, "in its device map for " + callee + " " + ok.error().message);
  }
  auto ok = CheckEnd(worker, callee, worker, "source", SourcesOf(map));
  if (!ok || target == nullptr) return ok;
  return CheckEnd(worker, callee, *target, "target", TargetsOf(map));
}

Result<void> CheckNames(const WorkerDevices& worker, const std::vector<WorkerDevices>& workers,
                        bool is_complete) {
  for (const auto& [callee, map] : worker.maps) {
    if (Find(workers, callee) != nullptr) continue;
    if (!is_complete) {  // a worker that may join later
      if (CheckWorkerName({.id = -1, .name = callee})) continue;
      return Invalid(worker, "a device map for \"" + callee + "\", which is no worker's name");
    }
    std::string names;
    for (const WorkerDevices& each : workers) names += (names.empty() ? "" : ", ") + each.worker;
    return Invalid(worker, "a device map for " + callee + ": want one of " + names);
  }
  return {};
}

Json JsonOf(const Device& device) { return {static_cast<int>(device.type), device.index}; }

Device DeviceIn(const Json& json) {
  return {.type = static_cast<DeviceType>(json.at(0).get<int>()), .index = json.at(1).get<int>()};
}

}  // namespace

std::string TextOf(const WorkerDevices& worker) {
  Json maps = Json::object();
  for (const auto& [callee, map] : worker.maps) {
    Json& pairs = maps[callee] = Json::array();
    for (const auto& [from, to] : map) pairs.push_back({JsonOf(from), JsonOf(to)});
  }
  Json devices = Json::array();
  for (const Device& each : worker.devices) devices.push_back(JsonOf(each));
  const Json all{
      {"worker", worker.worker}, {"gpus", worker.gpus}, {"maps", maps}, {"devices", devices}};
  // Names are checked later, by all workers.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WorkerDevices> WorkerDevicesIn(const std::string& text) {
  try {
    Json json = Json::parse(text);
    WorkerDevices worker{.worker = json.at("worker"), .gpus = json.at("gpus")};
    for (const auto& [callee, pairs] : json.at("maps").items()) {
      DevicePairs& map = worker.maps[callee];
      for (const Json& each : pairs) map.emplace_back(DeviceIn(each.at(0)), DeviceIn(each.at(1)));
    }
    for (const Json& each : json.at("devices")) worker.devices.push_back(DeviceIn(each));
    return worker;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kProtocol,
                 "a worker of RPC does not tell its devices: " + std::string(error.what())};
  }
}

std::string InWords(const DevicePairs& map) {
  std::string text;
  for (const auto& [from, to] : map) {
    text += (text.empty() ? "" : ", ") + InWords(from) + " to " + InWords(to);
  }
  return text;
}

Result<void> CheckOneToOne(const DevicePairs& map) {
  const char* end = HasDuplicates(TargetsOf(map))   ? "target"
                    : HasDuplicates(SourcesOf(map)) ? "source"
                                                    : nullptr;
  if (end == nullptr) return {};
  return Error{ErrorCode::kInvalid, "a " + std::string(end) + " twice: " + InWords(map)};
}

std::string InWords(const Device& device) {
  if (device.type == DeviceType::kCpu) return "cpu";
  return "cuda:" + std::to_string(device.index);
}

Result<void> CheckDeviceMaps(const std::vector<WorkerDevices>& workers, bool is_complete) {
  for (const WorkerDevices& worker : workers) {
    if (auto ok = CheckDevices(worker); !ok) return ok;
  }
  for (const WorkerDevices& worker : workers) {
    if (auto ok = CheckNames(worker, workers, is_complete); !ok) return ok;
    for (const auto& [callee, map] : worker.maps) {
      auto fits = CheckMap(worker, callee, map, Find(workers, callee));
      if (!fits) return fits;
    }
  }
  return {};
}

DeviceMaps ReverseMaps(const std::vector<WorkerDevices>& workers, const std::string& worker) {
  DeviceMaps reverse;
  for (const WorkerDevices& caller : workers) {
    auto found = caller.maps.find(worker);
    if (found == caller.maps.end()) continue;
    DevicePairs& back = reverse[caller.worker];
    for (const auto& [from, to] : found->second) back.emplace_back(to, from);
  }
  return reverse;
}

std::vector<Device> DevicesInUse(const WorkerDevices& worker, const DeviceMaps& reverse) {
  std::vector<Device> devices = worker.devices;
  auto add_sources = [&](const DeviceMaps& maps) {
    for (const auto& [name, map] : maps) {
      for (const Device& device : SourcesOf(map)) {
        if (!Contains(devices, device)) devices.push_back(device);
      }
    }
  };
  if (devices.empty()) {
    add_sources(worker.maps);
    add_sources(reverse);
  }
  std::erase_if(devices, [](const Device& device) { return device.type == DeviceType::kCpu; });
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return KeyOf(a) < KeyOf(b); });
  return devices;
}

}  // namespace rankrun::comm::rpc
