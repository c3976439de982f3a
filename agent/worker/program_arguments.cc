#include "agent/worker/program_arguments.h"

#include <algorithm>
#include <string_view>

namespace rankrun::agent {
namespace {

constexpr std::string_view kName = "local_rank";

bool MayBeginName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool MayBeInName(char c) { return MayBeginName(c) || (c >= '0' && c <= '9'); }

// Returns the length of "$local_rank" or "${local_rank}" at the start of
// `text`, or 0.
size_t PlaceholderAt(std::string_view text) {
  if (text.starts_with("${")) {
    bool is_name =
        text.substr(2).starts_with(kName) && text.substr(2 + kName.size()).starts_with('}');
    return is_name ? kName.size() + 3 : 0;
  }
  if (text.size() < 2 || !MayBeginName(text[1])) return 0;
  size_t end = 1;
  while (end < text.size() && MayBeInName(text[end])) end += 1;
  return text.substr(1, end - 1) == kName ? end : 0;
}

std::string Replaced(std::string_view text, const std::string& value, bool halve_dollars) {
  std::string result;
  while (!text.empty()) {
    size_t dollar = std::min(text.find('$'), text.size());
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    size_t taken = std::min<size_t>(text.starts_with("$$") ? 2 : 1, text.size());
    if (size_t length = PlaceholderAt(text); length > 0) {
      result += value;
      taken = length;
    } else {
      result += text.substr(0, halve_dollars ? std::min<size_t>(taken, 1) : taken);
    }
    text.remove_prefix(taken);
  }
  return result;
}

}  // namespace

std::vector<std::string> ArgumentsFor(const Program& program, int local_rank) {
  std::vector<std::string> arguments = program.arguments;
  for (size_t i = 1; i < arguments.size(); ++i) {
    arguments[i] = Replaced(arguments[i], std::to_string(local_rank), program.halve_dollars);
  }
  return arguments;
}

}  // namespace rankrun::agent
