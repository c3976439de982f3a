#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankrun::agent {

// The place of a worker, as a prefix template names it.
struct PrefixValues {
  std::string role_name;
  int local_rank = 0;
  int global_rank = 0;
};

// Replaces ${role_name}, ${local_rank} and ${rank}, also without braces, and
// "$$" by one "$"; any other "$" stays. Pure.
// Source: string.Template.safe_substitute of docs.python.org/3/library/string.html
std::string ExpandPrefix(std::string_view pattern, const PrefixValues& values);

// Appends `text` to `out`, with `prefix` before each line that begins in it;
// its first byte begins one if `at_line_start`. A carriage return that is not
// followed by a newline begins a line, too: a progress bar. Pure.
void AppendPrefixed(std::string_view text, std::string_view prefix, bool at_line_start,
                    std::string& out);

}  // namespace rankrun::agent
