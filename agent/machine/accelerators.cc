#include "agent/machine/accelerators.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "agent/job/environment.h"
#include "agent/machine/gpus.h"
#include "base/parse_number.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

constexpr const char* kCuda = "CUDA_VISIBLE_DEVICES";
constexpr const char* kMask = "ZE_AFFINITY_MASK";
constexpr const char* kSelector = "ONEAPI_DEVICE_SELECTOR";

// How the accelerators of one maker are found.
struct Kind {
  Maker maker;
  std::string_view noun;
  std::string_view torch_type;
  const char* variable;                // for a choice where none is set
  std::vector<const char*> variables;  // the first that lists devices counts
  size_t (*count)(const std::string& root);
};

std::vector<fs::path> FilesIn(const std::string& folder) {
  std::vector<fs::path> entries;
  std::error_code none;  // without the driver the folder does not exist
  for (const auto& entry : fs::directory_iterator(folder, none)) entries.push_back(entry.path());
  return entries;
}

size_t CountNvidia(const std::string& root) {
  return FilesIn(root + "/proc/driver/nvidia/gpus").size();
}

// The nodes of the topology are CPUs and GPUs; only GPUs have SIMD units. The
// kernel refuses the properties of a GPU that our container may not use.
size_t CountAmd(const std::string& root) {
  size_t count = 0;
  for (const fs::path& node : FilesIn(root + "/sys/class/kfd/kfd/topology/nodes")) {
    std::ifstream properties(node / "properties");
    std::string name;
    for (long value = 0; properties >> name >> value;) {
      if (name == "simd_count" && value > 0) count += 1;
    }
  }
  return count;
}

// Containers see the drivers of all devices of their host in /sys, but only
// their own devices in /dev. Graphics inside of a CPU have a fixed address and
// do not count.
size_t CountIntel(const std::string& root) {
  constexpr std::string_view kInCpu = "0000:00:02.0";
  size_t count = 0;
  for (const fs::path& node : FilesIn(root + "/sys/class/drm")) {
    std::string name = node.filename();
    std::error_code none;
    if (!name.starts_with("renderD") || !fs::exists(root + "/dev/dri/" + name, none)) continue;
    std::string driver = fs::read_symlink(node / "device/driver", none).filename();
    std::string address = fs::read_symlink(node / "device", none).filename();
    if ((driver == "xe" || driver == "i915") && address != kInCpu) count += 1;
  }
  return count;
}

size_t CountHuawei(const std::string& root) {
  constexpr std::string_view kPrefix = "davinci";
  auto entries = FilesIn(root + "/dev");
  return static_cast<size_t>(std::ranges::count_if(entries, [&](const fs::path& entry) {
    std::string name = entry.filename();
    return name.starts_with(kPrefix) &&
           ParseNumber<int>(name.substr(kPrefix.size()));  // not davinci_manager
  }));
}

const std::array<Kind, 4>& Kinds() {
  static constexpr const char* kHip = "HIP_VISIBLE_DEVICES";
  static constexpr const char* kAscend = "ASCEND_RT_VISIBLE_DEVICES";
  static const std::array<Kind, 4> kinds = {
      {{Maker::kNvidia, "GPU", "cuda", kCuda, {kCuda}, CountNvidia},
       {Maker::kAmd, "GPU", "cuda", kHip, {kHip, kCuda, "ROCR_VISIBLE_DEVICES"}, CountAmd},
       {Maker::kIntel, "GPU", "xpu", kMask, {kSelector, kMask}, CountIntel},
       {Maker::kHuawei, "NPU", "npu", kAscend, {kAscend}, CountHuawei}}};
  return kinds;
}

const Kind& KindOf(Maker maker) { return *std::ranges::find(Kinds(), maker, &Kind::maker); }

// Returns the parts without blanks at both ends.
Names Split(std::string_view text, char separator) {
  constexpr std::string_view kBlanks = " \t\r\n";
  Names parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    size_t first = std::min(part.find_first_not_of(kBlanks), part.size());
    parts.emplace_back(part.substr(first, part.find_last_not_of(kBlanks) + 1 - first));
    begin = end + 1;
  }
  return parts;
}

// Returns whether `entry` is a device, or a part of one: "3", "0.1".
bool IsDeviceOrPart(const std::string& entry) {
  auto is_number = [](const std::string& part) { return ParseNumber<size_t>(part).has_value(); };
  return std::ranges::all_of(Split(entry, '.'), is_number);
}

// Meaning of a variable.
struct Choice {
  std::optional<Names> listed = {};  // nothing: all devices
  bool names = false;                // any device, visible or not
};

// Reads ONEAPI_DEVICE_SELECTOR: "level_zero:0,1" is "level_zero:0" and
// "level_zero:1"; "level_zero:gpu" lists nothing. PyTorch uses no other backend.
Choice ReadSelector(std::string_view selector) {
  Choice choice;
  for (const std::string& term : Split(selector, ';')) {
    size_t colon = term.find(':');
    if (colon == term.npos || term.starts_with('!')) continue;  // "!" takes away from all
    if (!choice.listed) choice.listed.emplace();
    std::string backend = term.substr(0, colon);
    if (backend != "level_zero" && backend != "*") continue;
    for (const std::string& device : Split(std::string_view(term).substr(colon + 1), ',')) {
      bool is_number = IsDeviceOrPart(device);
      choice.names |= is_number || device == "gpu";
      if (device == "gpu" || device == "*") return {std::nullopt, choice.names};
      if (is_number) choice.listed->push_back(backend + ":" + device);
    }
  }
  return choice;
}

Choice ReadMask(std::string_view mask) {
  Names entries = Split(mask, ',');
  bool is_list = std::ranges::all_of(entries, IsDeviceOrPart);
  return {is_list ? entries : Names(), is_list};
}

Choice Read(std::string_view variable, std::string_view value) {
  if (variable == kSelector) return ReadSelector(value);
  if (variable == kMask) return ReadMask(value);
  return {ParseVisibleDevices(value), std::ranges::any_of(Split(value, ','), IsGpu)};
}

Accelerators UsedOf(const Kind& kind, const Names& environment) {
  Accelerators used{kind.maker, kind.variable};
  for (const char* variable : kind.variables) {
    auto value = VariableOf(environment, variable);
    if (!value) continue;
    Choice choice = Read(variable, *value);
    if (choice.names) used.named_by = std::string(variable) + "=" + *value;
    if (!choice.listed) continue;
    used.variable = variable;
    used.listed = std::move(choice.listed);
    break;
  }
  return used;
}

}  // namespace

Accelerators FindAccelerators(const std::vector<std::string>& environment,
                              const std::string& root) {
  for (const Kind& kind : Kinds()) {
    Accelerators used = UsedOf(kind, environment);
    bool is_hidden = used.listed && used.named_by.empty();
    if (!is_hidden && kind.count(root) > 0) return used;
  }
  for (const Kind& kind : Kinds()) {
    Accelerators used = UsedOf(kind, environment);
    if (!used.named_by.empty()) return used;
  }
  return UsedOf(Kinds()[0], environment);
}

Result<std::vector<std::string>> VisibleDevices(const Accelerators& accelerators,
                                                const std::string& root) {
  if (accelerators.listed) return *accelerators.listed;
  if (accelerators.maker == Maker::kNvidia) return VisibleGpus(std::nullopt, root + "/proc");
  Names all;
  for (size_t i = 0, count = KindOf(accelerators.maker).count(root); i < count; ++i) {
    all.push_back(std::to_string(i));
  }
  return all;
}

std::vector<std::string> EntriesOf(const std::string& variable, std::string_view value) {
  if (variable == kSelector) return ReadSelector(value).listed.value_or(Names());
  return Split(value, ',');
}

std::string ValueFor(const std::string& variable, const std::vector<std::string>& devices) {
  const bool has_backends = variable == kSelector;
  std::string value;
  for (const std::string& device : devices) {
    if (&device != &devices.front()) value += has_backends ? ';' : ',';
    if (has_backends && IsDeviceOrPart(device)) value += "level_zero:";
    value += device;
  }
  return value;
}

std::string_view NounOf(Maker maker) { return KindOf(maker).noun; }

std::string_view TorchTypeOf(Maker maker) { return KindOf(maker).torch_type; }

std::optional<std::string> VariableOfType(std::string_view torch_type) {
  auto kind = std::ranges::find(Kinds(), torch_type, &Kind::torch_type);
  return kind == Kinds().end() ? std::nullopt : std::optional<std::string>(kind->variable);
}

}  // namespace rankrun::agent
