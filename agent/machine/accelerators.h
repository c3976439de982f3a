#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::agent {

// Makers of accelerators that rankrun can count.
enum class Maker { kNvidia, kAmd, kIntel, kHuawei };

// The accelerators of a job: those of one maker.
struct Accelerators {
  Maker maker = Maker::kNvidia;
  std::string variable = "CUDA_VISIBLE_DEVICES";        // chooses among them
  std::optional<std::vector<std::string>> listed = {};  // by that variable, as far as visible
  std::string named_by = {};  // "HIP_VISIBLE_DEVICES=0,1"; empty: no variable names devices

  bool operator==(const Accelerators&) const = default;
};

// Returns the accelerators that a program with this environment ("NAME=value")
// uses: of the first maker whose devices are here and not hidden by a variable,
// else of the first whose variable names devices. Reads files below `root`,
// which stands for "/"; cheap.
// Source: ROCm, "GPU isolation techniques"; oneAPI Level Zero,
// ZE_AFFINITY_MASK; DPC++, ONEAPI_DEVICE_SELECTOR; CANN,
// ASCEND_RT_VISIBLE_DEVICES.
Accelerators FindAccelerators(const std::vector<std::string>& environment,
                              const std::string& root = "");

// Returns the visible devices, named as in the variable: its list, or without a
// list the numbers of all devices here. May be slow.
// Errors: those of VisibleGpus.
Result<std::vector<std::string>> VisibleDevices(const Accelerators& accelerators,
                                                const std::string& root = "");

// Returns the entries of a list in this variable for one worker each. Pure.
std::vector<std::string> EntriesOf(const std::string& variable, std::string_view value);

// Returns the value by which this variable chooses these devices, named by numbers
// or as EntriesOf names them. Pure.
std::string ValueFor(const std::string& variable, const std::vector<std::string>& devices);

// Returns the word for messages: "GPU", "NPU".
std::string_view NounOf(Maker maker);

// Returns PyTorch's name of the type: "cuda" also for AMD, "xpu", "npu".
std::string_view TorchTypeOf(Maker maker);

// Returns the variable that chooses among devices of this type of PyTorch;
// nothing for a type that rankrun does not know. Pure.
std::optional<std::string> VariableOfType(std::string_view torch_type);

}  // namespace rankrun::agent
