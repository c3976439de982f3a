#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/flag_table.h"

// What a man page says of flags.
namespace rankrun::launcher {

inline std::string ReadSource(const std::string& path) {
  std::ifstream file(std::string(RANKRUN_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without roff's escapes: "\\-" is a dash, "\\fI" a font.
inline std::string Unescaped(const std::string& roff) {
  std::string text;
  for (size_t i = 0; i < roff.size(); ++i) {
    if (roff[i] != '\\' || i + 1 == roff.size()) {
      text += roff[i];
    } else if (roff[++i] == 'f') {
      i += 1;  // the font's name
    } else {
      text += roff[i];
    }
  }
  return text;
}

// What a reader sees of a line: the arguments of a request of two letters
// (.BR) stand side by side, those of others (.B) have blanks between.
inline std::string ShownLine(const std::string& line) {
  if (!line.starts_with('.')) return Unescaped(line);
  size_t blank = line.find(' ');
  if (blank == std::string::npos) return "";
  bool side_by_side = blank == 3;
  bool quoted = false;
  std::string text;
  for (char c : line.substr(blank + 1)) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c != ' ' || quoted || !side_by_side) {
      text += c;
    }
  }
  return Unescaped(text);
}

inline std::string Shown(const std::string& roff) {
  std::istringstream lines(roff);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += ShownLine(line) + " ";
  return text;
}

// The entries (.TP) of the section OPTIONS.
inline std::vector<std::string> OptionEntries(const std::string& page) {
  size_t begin = page.find("\n.SH OPTIONS\n");
  EXPECT_NE(begin, std::string::npos);
  if (begin == std::string::npos) return {};
  std::string section = page.substr(begin + 1, page.find("\n.SH ", begin + 1) - begin);
  std::vector<std::string> entries;
  for (size_t at = section.find("\n.TP\n"); at != std::string::npos;) {
    size_t next = section.find("\n.TP\n", at + 1);
    entries.push_back(
        Shown(section.substr(at + 5, next == std::string::npos ? next : next - at - 5)));
    at = next;
  }
  return entries;
}

inline bool StartsTheEntry(const Flag& flag, const std::string& entry) {
  std::string head = "--" + std::string(flag.name);
  if (!flag.value_name.empty()) head += " " + std::string(flag.value_name);
  if (flag.letter != 0) head = std::string("-") + flag.letter + ", " + head;
  return entry.starts_with(head + " ");
}

// The entry of `flag`, with its default or without one, is among `entries`.
inline void ExpectEntry(const Flag& flag, const std::vector<std::string>& entries) {
  std::string found;
  for (const std::string& entry : entries) {
    if (StartsTheEntry(flag, entry)) found = entry;
  }
  ASSERT_NE(found, "") << "the man page has no --" << flag.name;
  if (flag.default_value.empty()) {
    EXPECT_EQ(found.find("Default:"), std::string::npos) << found;
  } else {
    std::string wanted = "Default: " + std::string(flag.default_value) + ".";
    EXPECT_NE(found.find(wanted), std::string::npos) << wanted << " is not in: " << found;
  }
}

}  // namespace rankrun::launcher
