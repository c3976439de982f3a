#include "launcher/flags/text.h"

#include <algorithm>

#include "base/printable.h"

namespace rankrun::launcher {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) { return Split(text, ','); }

std::string Uppercase(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::optional<std::string> SwitchText(std::string_view text) {
  for (std::string_view on : {"1", "true", "yes"}) {
    if (text == on) return "true";
  }
  for (std::string_view off : {"0", "false", "no"}) {
    if (text == off) return "false";
  }
  return std::nullopt;
}

std::string WrongSwitch(std::string_view text) {
  return "want 1, true or yes, or 0, false or no" + Got(text);
}

std::string Got(std::string_view text) { return ", got \"" + OneLine(text) + "\""; }

}  // namespace rankrun::launcher
