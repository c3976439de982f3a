#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rankrun::launcher {

// Returns a variable of the environment, or nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The Environment of this process.
std::optional<std::string> VariableOfProcess(const std::string& name);

}  // namespace rankrun::launcher
