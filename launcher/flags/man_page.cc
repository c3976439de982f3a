#include "launcher/flags/man_page.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "launcher/flags/flags.h"
#include "launcher/flags/marked_text.h"

namespace rankrun::launcher {
namespace {

// Marks words in capitals as placeholders and all others as literals:
// "N|auto" becomes "_N_|`auto`".
std::string MarkedValueName(std::string_view name) {
  auto is_in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  };
  std::string marked;
  while (!name.empty()) {
    auto end = static_cast<size_t>(std::ranges::find_if_not(name, is_in_word) - name.begin());
    std::string word(name.substr(0, end));
    bool is_placeholder = !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
    const char* mark = word.empty() ? "" : is_placeholder ? "_" : "`";
    marked += mark + word + mark;
    if (end < name.size()) marked += name[end++];
    name.remove_prefix(end);
  }
  return marked;
}

std::string MarkedSpellings(const Flag& flag) {
  std::string text;
  if (flag.letter != 0) text = std::string("`-") + flag.letter + "`, ";
  text += "`--" + std::string(flag.name) + "`";
  if (!flag.value_name.empty()) text += " " + MarkedValueName(flag.value_name);
  return text;
}

std::vector<std::string> VariablesOf(const Flag& flag) {
  std::vector<std::string> variables;
  for (std::string_view prefix : {kOurPrefix, kPetPrefix}) {
    if (auto variable = VariableNameOf(flag, prefix)) variables.push_back(std::move(*variable));
  }
  if (!flag.last_variable.empty()) variables.emplace_back(flag.last_variable);
  return variables;
}

// "Default: 3. Variables: RANKRUN_X, PET_X."
std::string LastLine(const Flag& flag, std::string_view note) {
  std::string line;
  if (!flag.default_value.empty()) line += "Default: " + std::string(flag.default_value) + ". ";
  std::string names;
  std::vector<std::string> variables = VariablesOf(flag);
  for (const std::string& name : variables) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) line += (variables.size() == 1 ? "Variable: " : "Variables: ") + names + ". ";
  line += note;
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string ManEntry(const Flag& flag, std::string_view note) {
  constexpr std::string_view kSeparator = ".IP";
  std::string text(flag.help);
  if (!flag.details.empty() && !flag.details.starts_with('\n')) text += " ";
  text += flag.details;
  std::string entry = ".TP\n" + ManLine(MarkedSpellings(flag)) + "\n";
  entry += ManParagraphs(text, kSeparator);
  std::string last = LastLine(flag, note);
  if (!last.empty()) entry += ".br\n" + ManParagraphs(last, kSeparator);
  return entry;
}

std::string ManEntries(const FlagTable& table) {
  std::vector<FlagGroup> groups = GroupsOf(table);
  std::string text;
  for (const FlagGroup& group : groups) {
    if (groups.size() > 1) text += ".SS " + std::string(group.heading) + "\n";
    for (const Flag* flag : group.flags) text += ManEntry(*flag);
  }
  return text;
}

std::string GeneratedPart(std::string_view source, std::string_view text) {
  return ".\\\" Generated from " + std::string(source) + " by scripts/man.sh; do not edit.\n" +
         std::string(text) + ".\\\" End of the generated part.\n";
}

std::string RankrunManPart() {
  return GeneratedPart("launcher/flags/flags_*.cc", ManEntries(RankrunFlags()));
}

}  // namespace rankrun::launcher
