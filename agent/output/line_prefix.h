#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// Values of the variables in a prefix template.
struct PrefixValues {
  std::string role_name;
  int local_rank = 0;
  int global_rank = 0;
  std::string host_name = {};
};

// Replaces ${role_name}, ${local_rank}, ${rank} and ${hostname}, also without
// braces, and "$$" by "$". Any other "$" stays. Pure.
// Source: string.Template.safe_substitute of
// docs.python.org/3/library/string.html
std::string ExpandPrefix(std::string_view pattern, const PrefixValues& values);

// Appends `text` to `out`, with `prefix` before each line that begins in it.
// The first byte begins a line if `at_line_start`. A carriage return without a
// newline also begins a line (progress bars). Pure.
void AppendPrefixed(std::string_view text, std::string_view prefix, bool at_line_start,
                    std::string& out);

}  // namespace rankrun::agent
