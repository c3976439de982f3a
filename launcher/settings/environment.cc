#include "launcher/settings/environment.h"

#include <cstdlib>

namespace rankrun::launcher {

std::optional<std::string> VariableOfProcess(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace rankrun::launcher
