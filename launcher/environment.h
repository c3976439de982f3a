#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rankrun::launcher {

// A variable of the environment, or nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

}  // namespace rankrun::launcher
