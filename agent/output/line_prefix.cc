#include "agent/output/line_prefix.h"

#include <cctype>

namespace rankrun::agent {
namespace {

bool IsNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the variable name at the beginning of `text`, which follows a "$".
// `taken` is its length with braces; 0: there is no name.
std::string_view NameIn(std::string_view text, size_t& taken) {
  bool braces = text.starts_with('{');
  size_t begin = braces ? 1 : 0;
  size_t end = begin;
  while (end < text.size() && IsNamePart(text[end])) ++end;
  bool closed = !braces || (end < text.size() && text[end] == '}');
  taken = closed && end > begin ? end + (braces ? 1 : 0) : 0;
  return text.substr(begin, end - begin);
}

bool AppendValue(std::string_view name, const PrefixValues& values, std::string& out) {
  if (name == "role_name") {
    out += values.role_name;
  } else if (name == "local_rank") {
    out += std::to_string(values.local_rank);
  } else if (name == "rank") {
    out += std::to_string(values.global_rank);
  } else if (name == "hostname") {
    out += values.host_name;
  } else {
    return false;
  }
  return true;
}

// Returns the end of the line that begins at `begin`: after its newline, or
// after its carriage returns.
size_t EndOfLine(std::string_view text, size_t begin) {
  size_t newline = text.find('\n', begin);
  size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
  size_t bar = text.substr(0, end).find('\r', begin);
  if (bar == std::string_view::npos) return end;
  while (bar < end && text[bar] == '\r') ++bar;
  return bar < text.size() && text[bar] == '\n' ? bar + 1 : bar;
}

}  // namespace

std::string ExpandPrefix(std::string_view pattern, const PrefixValues& values) {
  std::string out;
  while (!pattern.empty()) {
    size_t dollar = pattern.find('$');
    out += pattern.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    pattern.remove_prefix(dollar + 1);
    size_t taken = 0;
    std::string_view name = NameIn(pattern, taken);
    if (pattern.starts_with('$')) {
      out += '$';
      taken = 1;
    } else if (taken == 0 || !AppendValue(name, values, out)) {
      out += '$';
      taken = 0;
    }
    pattern.remove_prefix(taken);
  }
  return out;
}

void AppendPrefixed(std::string_view text, std::string_view prefix, bool at_line_start,
                    std::string& out) {
  if (prefix.empty()) {
    out += text;
    return;
  }
  for (size_t begin = 0; begin < text.size();) {
    // A progress bar that begins with a carriage return gets its prefix after
    // it.
    bool bare_return = text[begin] == '\r' && (begin + 1 == text.size() || text[begin + 1] != '\n');
    if (at_line_start && !bare_return) out += prefix;
    size_t end = EndOfLine(text, begin);
    out += text.substr(begin, end - begin);
    begin = end;
    at_line_start = true;
  }
}

}  // namespace rankrun::agent
