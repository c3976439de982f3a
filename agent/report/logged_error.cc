#include "agent/report/logged_error.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/report/json_log.h"
#include "agent/report/last_error.h"
#include "agent/report/long_text.h"
#include "agent/report/lost_peer.h"
#include "base/find_last.h"
#include "base/lowercase.h"

namespace rankrun::agent {
namespace {

constexpr size_t kNearLines = 20;  // before the last error
constexpr std::string_view kLevels[] = {"error", "critical", "fatal"};
constexpr std::string_view kKeys[] = {"level=", "lvl=", "severity="};
constexpr std::string_view kSkipped = " \t:=+-.";  // before a number
constexpr size_t kMaxMetric = 32;
constexpr std::string_view kOutOfMemory = "out of memory";
constexpr std::string_view kHeaders[] = {"Traceback (most recent call last)",
                                         "terminate called after throwing"};

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

// Returns where the output about the last error begins.
size_t BeginOf(const LastError& last, std::string_view output) {
  // A long line has lost its middle.
  const size_t at = FindLast(output, FirstLine(last.text).substr(0, kMaxLine / 2));
  if (at == output.npos) return 0;
  size_t begin = output.npos;
  for (std::string_view header : kHeaders) {
    const size_t found = FindLast(output.substr(0, at + header.size()), header);
    if (found != output.npos && (begin == output.npos || found > begin)) begin = found;
  }
  return begin == output.npos ? at : begin;
}

bool IsNear(const LastError& error) {
  return error.is_exception && error.lines_after <= static_cast<int>(kNearLines);
}

bool IsAboutPeer(std::string_view text) {
  const LastError error{.text = std::string(text), .is_exception = true};
  return BlamesLostPeer(error) || EndsWithLostPeer(error) || TimedOut(error) || InputEnded(error);
}

bool IsLower(unsigned char c) { return std::islower(c) != 0; }

bool IsInName(unsigned char c) { return std::isalnum(c) || c == '_'; }

template <int (*kIsOfClass)(int)>
bool HasAny(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return kIsOfClass(c) != 0; });
}

bool HasLowerWord(std::string_view text) {
  const auto are_lower = [](unsigned char a, unsigned char b) { return IsLower(a) && IsLower(b); };
  return std::ranges::adjacent_find(text, are_lower) != text.end();
}

// Returns whether a word is followed by a number: ": 0.31", "=2", " rate: 3 %", " nan".
bool IsMetric(std::string_view after) {
  const std::string lower = Lowercase(std::string(after.substr(0, kMaxMetric)));
  std::string_view text = lower;
  const auto skip = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kSkipped), text.size()));
  };
  skip();
  for (std::string_view link : {"rate", "is "}) {
    if (text.starts_with(link)) text.remove_prefix(link.size());
  }
  skip();
  return text.starts_with("nan") || text.starts_with("inf") ||
         HasAny<std::isdigit>(text.substr(0, 1));
}

// A word of a line, and the text around it.
struct Word {
  std::string_view before;
  std::string_view text;
  std::string_view after;
};

// "E0101 12:00:00.000000 77 file.cc:80] text", as Google's logging library writes it.
bool IsGlogsLevel(const Word& word) {
  constexpr size_t kSize = 5;
  return word.text.size() == kSize && (word.text[0] == 'E' || word.text[0] == 'F') &&
         !HasAny<std::isalpha>(word.text.substr(1)) && word.after.find("] ") != word.after.npos &&
         (word.before.empty() || word.before.ends_with('['));
}

// "level=error", but not "log_level=error".
bool IsValueOfLevel(std::string_view before) {
  if (before.ends_with('"')) before.remove_suffix(1);
  return std::ranges::any_of(kKeys, [&](std::string_view key) {
    if (!before.ends_with(key)) return false;
    before.remove_suffix(key.size());
    return before.empty() || before.ends_with(' ');
  });
}

// Returns whether a message may begin here: after a prefix, or a time.
bool IsHead(std::string_view before) {
  before = before.substr(0, before.find_last_not_of(' ') + 1);
  constexpr std::string_view kEnds = ":]|>-";
  return !HasAny<std::isalpha>(before) || kEnds.find(before.back()) != kEnds.npos;
}

bool SaysError(const Word& word) {
  const std::string lower = Lowercase(std::string(word.text));
  const bool is_level = std::ranges::find(kLevels, lower) != std::end(kLevels);
  if (is_level && (IsValueOfLevel(word.before) ||
                   (word.before.ends_with('[') && word.after.starts_with(']')))) {
    return true;
  }
  const bool is_upper = std::ranges::none_of(word.text, IsLower);
  if (is_level && is_upper && !word.before.ends_with('=')) {
    return !IsMetric(word.after) || HasLowerWord(word.after);  // "ERROR 3 shards are missing"
  }
  if (IsGlogsLevel(word)) return true;
  if (!word.after.starts_with(": ") || IsMetric(word.after)) return false;
  if (is_level || lower == "exception") return IsHead(word.before);
  return word.text.ends_with("Error") || word.text.ends_with("Exception");
}

bool ReportsError(const std::string& whole_line) {
  const std::string shown = WithoutMiddle(whole_line);
  const std::string_view line = shown;
  if (IsAboutPeer(line)) return false;
  const std::string lower = Lowercase(shown);
  const size_t memory = lower.find(kOutOfMemory);
  if (memory != lower.npos && !IsMetric(line.substr(memory + kOutOfMemory.size()))) return true;
  for (size_t begin = 0, end = 0; begin < line.size(); begin = end + 1) {
    end = begin;
    while (end < line.size() && IsInName(static_cast<unsigned char>(line[end]))) ++end;
    const Word word{line.substr(0, begin), line.substr(begin, end - begin), line.substr(end)};
    if (!word.text.empty() && SaysError(word)) return true;
  }
  return false;
}

}  // namespace

std::string LoggedError(std::string_view output) {
  const std::string plain = WithPlainErrors(output);
  std::string_view standard_error = plain;
  if (LastError last = FindLastError(standard_error); IsNear(last)) {
    standard_error = standard_error.substr(0, BeginOf(last, standard_error));
    const LastError caught = FindLastError(standard_error);
    if (IsNear(caught)) return IsAboutPeer(caught.text) ? "" : FirstLine(caught.text);
  }
  std::vector<std::string> lines = LastLines(standard_error, kNearLines);
  const auto found = std::find_if(lines.rbegin(), lines.rend(), ReportsError);
  return found == lines.rend() ? "" : std::move(*found);
}

}  // namespace rankrun::agent
