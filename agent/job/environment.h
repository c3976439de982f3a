#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// Returns the value of the variable `name` among "NAME=value" entries. The last
// entry of a name counts.
std::optional<std::string> VariableOf(const std::vector<std::string>& environment,
                                      const std::string& name);

}  // namespace rankrun::agent
