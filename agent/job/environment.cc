#include "agent/job/environment.h"

namespace rankrun::agent {

std::optional<std::string> VariableOf(const std::vector<std::string>& environment,
                                      const std::string& name) {
  std::string start = name + "=";
  std::optional<std::string> value;
  for (const std::string& entry : environment) {
    if (entry.starts_with(start)) value = entry.substr(start.size());
  }
  return value;
}

}  // namespace rankrun::agent
