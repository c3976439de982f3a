#include "agent/report/exit_noise.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace rankrun::agent {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr std::string_view kTracebackOfPeer = "Traceback (most recent call last): (RANK ";

bool IsIndented(std::string_view line) { return line.empty() || line.front() == ' '; }

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Returns whether a line is "/lib/tracker.py:254: UserWarning: 3 objects were not closed".
bool IsPythonsWarning(std::string_view line) {
  const size_t end = line.find("Warning: ");
  if (end == line.npos) return false;
  const size_t type = line.rfind(": ", end);
  return type != line.npos && type > 0 && IsDigit(line[type - 1]) && line.find(' ', type + 2) > end;
}

// Returns whether a line is "[W1128 20:11:59.3 ProcessGroupNCCL.cpp:1538] Warning: ...".
bool IsTorchsWarning(std::string_view line) {
  return line.size() > 2 && line.starts_with("[W") && IsDigit(line[2]);
}

// Returns the line after the noise that begins at `begin`; `begin` if there is none.
size_t EndOfNoise(const std::vector<std::string>& lines, size_t begin) {
  const std::string_view line = WithoutRank(lines[begin]);
  const size_t next = begin + 1;
  if (IsTorchsWarning(line)) return next;
  if (IsPythonsWarning(line)) {
    const bool has_source = next < lines.size() && WithoutRank(lines[next]).starts_with("  ");
    return has_source ? next + 1 : next;
  }
  if (!line.starts_with("Exception ignored ")) return begin;
  if (next == lines.size() || !IsTraceback(lines[next])) return next;
  return std::min(ExceptionAfter(lines, next) + 1, lines.size());
}

}  // namespace

std::string_view WithoutRank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const size_t end = line.find("]:");
  if (end == line.npos) return line;
  line.remove_prefix(end + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

bool IsTraceback(std::string_view line) {
  return line.find(kTraceback) != line.npos && !IsTracebackOfPeer(line);
}

bool IsTracebackOfPeer(std::string_view line) { return line.find(kTracebackOfPeer) != line.npos; }

size_t ExceptionAfter(const std::vector<std::string>& lines, size_t header) {
  size_t at = header + 1;
  while (at < lines.size() && IsIndented(WithoutRank(lines[at]))) ++at;
  return at;
}

std::vector<std::string> WithoutExitNoise(std::vector<std::string> lines) {
  std::vector<std::string> since_traceback;  // without the noise
  bool has_traceback = false;
  size_t kept = 0;  // lines before the last traceback
  for (size_t i = 0; i < lines.size();) {
    const size_t end = EndOfNoise(lines, i);
    if (end > i) {
      i = end;
      continue;
    }
    if (IsTraceback(lines[i])) {
      has_traceback = true;
      since_traceback.clear();
      kept = i;
    }
    since_traceback.push_back(lines[i++]);
  }
  if (!has_traceback) return lines;
  lines.resize(kept);
  std::ranges::move(since_traceback, std::back_inserter(lines));
  return lines;
}

}  // namespace rankrun::agent
