#include <algorithm>

#include <rankrun/backend_options.h>

#include "comm/core/throw.h"
#include "comm/world/backend_table.h"
#include "comm/world/device_map.h"
#include "comm/world/plugin.h"

namespace rankrun {

std::string Backend::Parse(const std::string& text) {
  std::string name = comm::BackendName(text);
  if (comm::IsBackendName(name)) return name;
  comm::Throw({ErrorCode::kInvalid,
               "Backend: the name is \"" + text + "\": want letters, digits and _ only"});
}

std::vector<std::string> Backend::List() {
  std::vector<std::string> names = comm::RegisteredNames();
  names.insert(names.end(), {kAuto, kShm, kTcp, kHierarchical, kGloo, kMpi, kNccl});
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::map<std::string, std::string> DeviceBackendMap(const std::string& backend) {
  auto parsed = comm::Unwrap(comm::ParseDeviceMap(comm::BackendName(backend)));
  std::map<std::string, std::string> map{{"cpu", Backend::Parse(parsed.cpu)}};
  if (!parsed.cuda.empty()) map["cuda"] = Backend::Parse(parsed.cuda);
  return map;
}

std::string DefaultBackendForDevice(const std::string& device) {
  return comm::Unwrap(comm::DefaultBackendFor(device));
}

}  // namespace rankrun
