#include "launcher/flags/help.h"

#include <algorithm>
#include <utility>

#include "launcher/flags/marked_text.h"

namespace rankrun::launcher {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kTextColumn = 30;

// Returns `text` in the columns kTextColumn to kWidth. The first line begins
// with `head`, unless `head` is too long and takes a line of its own.
std::string Wrapped(std::string head, std::string_view text) {
  std::string result;
  std::string line = std::move(head);
  bool begun = line.size() + 1 < kTextColumn;
  if (!begun) result = std::exchange(line, "") + "\n";
  line.resize(kTextColumn, ' ');
  for (bool first = true; !text.empty(); first = false) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    if (!first && line.size() + 1 + word.size() > kWidth) {
      result += std::exchange(line, std::string(kTextColumn, ' ')) + "\n";
    } else if (!first) {
      line += ' ';
    }
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result + line + "\n";
}

std::string EntryOf(const Flag& flag) {
  std::string head = "  ";
  if (flag.letter != 0) head += std::string("-") + flag.letter + ",";
  head += "--" + std::string(flag.name);
  if (!flag.value_name.empty()) head += " " + std::string(flag.value_name);
  std::string text(flag.help);
  if (!flag.default_value.empty()) text += " Default: " + std::string(flag.default_value) + ".";
  return Wrapped(std::move(head), PlainText(text));
}

}  // namespace

std::string FormatHelp(const FlagTable& table, const std::string& usage,
                       const std::string& description) {
  std::string text = description;
  if (!text.ends_with('\n')) text += '\n';
  text += "\nUsage: " + std::string(table.command) + " " + usage + "\n";
  for (const FlagGroup& group : GroupsOf(table)) {
    text += "\n" + std::string(group.heading) + ":\n";
    for (const Flag* flag : group.flags) text += EntryOf(*flag);
  }
  return text;
}

}  // namespace rankrun::launcher
