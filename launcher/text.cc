#include "launcher/text.h"

#include <algorithm>

namespace rankrun::launcher {

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string Got(std::string_view text) { return ", got \"" + std::string(text) + "\""; }

}  // namespace rankrun::launcher
