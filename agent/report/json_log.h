#pragma once

#include <string>
#include <string_view>

namespace rankrun::agent {

// Replaces each line that is a JSON object with the level of an error, as structured logs have
// them, by "ERROR" with its message, and by the lines of its exception. Pure.
std::string WithPlainErrors(std::string_view output);

}  // namespace rankrun::agent
