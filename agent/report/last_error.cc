#include "agent/report/last_error.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/report/exit_noise.h"
#include "agent/report/json_log.h"
#include "agent/report/long_text.h"

namespace rankrun::agent {
namespace {

constexpr size_t kLastLines = 3;
// A program that continues after an exception writes more lines; one that ends with it, few.
constexpr int kMaxLinesAfter = 20;
constexpr std::string_view kChained[] = {
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
};
constexpr std::string_view kGosEnds[] = {"panic: ", "fatal error: "};
constexpr std::string_view kGoroutine = "goroutine ";
constexpr std::string_view kJavasThread = "Exception in thread \"";
constexpr std::string_view kJavasCause = "Caused by: ";
constexpr std::string_view kDotNets = "Unhandled exception. ";
constexpr std::string_view kRsEnd = "Execution halted";
constexpr std::string_view kTerminate = "terminate called after throwing an instance of '";

using Lines = std::vector<std::string>;

Lines AllLines(std::string_view text) {
  return LastLines(WithPlainErrors(text), std::numeric_limits<size_t>::max());
}

Lines Shortened(Lines lines) {
  for (std::string& line : lines) line = WithoutRank(WithoutMiddle(std::move(line)));
  return lines;
}

Lines LinesOf(std::string_view text) { return Shortened(WithoutExitNoise(AllLines(text))); }

bool IsChained(const std::string& line) {
  return std::ranges::any_of(kChained, [&](auto part) { return line.find(part) != line.npos; });
}

std::string Joined(const Lines& lines, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += lines[i] + '\n';
  return text;
}

int CountAfter(const Lines& lines, size_t at) {
  auto count = std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(at + 1), lines.end(),
                             [](const std::string& line) { return !line.empty(); });
  return static_cast<int>(count);
}

// Returns the header of the first traceback of the chain that ends with the one at `last`.
size_t FirstOfChain(const Lines& lines, size_t last) {
  size_t first = last;
  for (size_t i = last, is_linked = 0; i-- > 0;) {
    if (IsChained(lines[i])) is_linked = 1;
    if (!IsTraceback(lines[i])) continue;
    if (is_linked == 0) break;
    first = i;
    is_linked = 0;
  }
  return first;
}

// Returns whether a text begins with the value of a metric. "KeyError: 3" has none.
bool IsMetric(std::string_view text) {
  text = text.substr(0, text.find_first_of(" ,;"));
  const bool has_point = text.find('.') != text.npos;
  return text == "nan" || text == "inf" || text == "-inf" ||
         (has_point && text.find_first_not_of("0123456789.+-e%") == text.npos);
}

// Returns whether a line is "ValueError: no data", as programs print that catch their errors
// to end with an exit code.
bool IsException(std::string_view line) {
  const size_t colon = line.find(": ");
  if (colon != line.npos && IsMetric(line.substr(colon + 2))) return false;
  std::string_view type = line.substr(0, colon);
  bool is_name = std::ranges::all_of(
      type, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == ':'; });
  return is_name && (type.ends_with("Error") || type.ends_with("Exception"));
}

LastError ExceptionAt(const Lines& lines, size_t last) {
  size_t first = FirstOfChain(lines, last);
  size_t begin = ExceptionAfter(lines, first);
  size_t end = begin;
  while (end < lines.size() && !(first != last && IsChained(lines[end]))) ++end;
  size_t shown = ExceptionAfter(lines, last);
  while (shown + 1 < lines.size() && IsTracebackOfPeer(lines[shown + 1])) {
    shown = ExceptionAfter(lines, shown + 1);
  }
  return {Joined(lines, begin, end), true, shown < lines.size() ? CountAfter(lines, shown) : 0};
}

LastError TerminateAt(const Lines& lines, size_t at) {
  size_t last = at + 1 < lines.size() && lines[at + 1].starts_with("  what():") ? at + 1 : at;
  return {Joined(lines, at, last + 1), true, CountAfter(lines, last)};
}

// Returns whether a line is "thread 'main' panicked at src/main.rs:3:5:".
bool IsRustsPanic(const std::string& line) {
  return line.starts_with("thread '") && line.find(" panicked at ") != line.npos;
}

LastError RustsPanicAt(const Lines& lines, size_t at) {
  const auto ends = [&](size_t i) {
    return lines[i].empty() || lines[i].starts_with("note: ") || lines[i] == "stack backtrace:";
  };
  size_t end = at + 1;
  while (end < lines.size() && !ends(end)) ++end;
  size_t last = end - 1;
  // Frames of its backtrace are indented.
  for (size_t i = end; i < lines.size() && (ends(i) || lines[i].starts_with(' ')); ++i) last = i;
  return {Joined(lines, at, end), true, CountAfter(lines, last)};
}

bool IsGosPanic(const std::string& line) {
  return std::ranges::any_of(kGosEnds, [&](auto begin) { return line.starts_with(begin); });
}

// Returns whether a line is "goroutine 7 [running]:".
bool IsRunningGoroutine(const std::string& line) {
  return line.starts_with(kGoroutine) && line.find(" [running") != line.npos;
}

// The stacks of goroutines that follow it have no limit, and the program ends with them.
LastError GosPanicAt(const Lines& lines, size_t at) {
  size_t end = at + 1;
  while (end < lines.size() && !lines[end].empty() && !lines[end].starts_with(kGoroutine)) ++end;
  size_t next = end;
  while (next < lines.size() && lines[next].empty()) ++next;
  const bool has_stacks = next < lines.size() && lines[next].starts_with(kGoroutine);
  return {Joined(lines, at, end), true, has_stacks ? 0 : CountAfter(lines, end - 1)};
}

// "Exception in thread "main" java.io.EOFException", its frames, and its causes with theirs.
LastError JavasExceptionAt(const Lines& lines, size_t at) {
  std::string text = lines[at].substr(lines[at].find(kJavasThread) + kJavasThread.size());
  if (size_t name_end = text.find("\" "); name_end != text.npos) text.erase(0, name_end + 2);
  text += '\n';
  size_t last = at;
  const auto is_frame = [&](size_t i) { return i < lines.size() && lines[i].starts_with('\t'); };
  if (!is_frame(at + 1) && is_frame(at + 2)) text += lines[++last] + '\n';  // of its message
  for (size_t i = last + 1; i < lines.size(); ++i) {
    const bool is_cause = lines[i].starts_with(kJavasCause);
    if (!is_cause && !is_frame(i)) break;
    if (is_cause) text += lines[i].substr(kJavasCause.size()) + '\n';
    last = i;
  }
  return {text, true, CountAfter(lines, last)};
}

// .NET's "Unhandled exception. System.IO.IOException: text", its inner ones and its frames.
LastError DotNetsExceptionAt(const Lines& lines, size_t at) {
  std::string text = lines[at].substr(lines[at].find(kDotNets) + kDotNets.size()) + '\n';
  size_t last = at;
  for (size_t i = at + 1; i < lines.size() && lines[i].starts_with(' '); ++i) {
    if (lines[i].starts_with(" ---> ")) text += lines[i] + '\n';
    last = i;
  }
  return {text, true, CountAfter(lines, last)};
}

// `at`: "Execution halted" of R, under the error. The call may be on a line of its own.
LastError RsErrorAt(const Lines& lines, size_t at) {
  constexpr size_t kMaxLines = 3;
  for (size_t i = at; i-- > at - std::min(at, kMaxLines);) {
    if (lines[i].starts_with("Error")) return {Joined(lines, i, at), true, CountAfter(lines, at)};
  }
  return {Joined(lines, at, at + 1), true, CountAfter(lines, at)};
}

// Returns whether a line is a frame of JavaScript: "    at f (a.js:7:3)".
bool IsJavaScriptsFrame(const std::string& line) { return line.starts_with("    at "); }

// `at`: its last frame. The fields of the error, in braces, and the version of Node.js follow.
// "Emitted 'error' event on Socket instance at:" and its frames may precede them.
LastError JavaScriptsErrorAt(const Lines& lines, size_t at) {
  constexpr size_t kMaxFields = 12;
  const auto header_above = [&](size_t frame) {
    while (frame > 0 && IsJavaScriptsFrame(lines[frame])) --frame;
    return frame;
  };
  size_t begin = header_above(at);
  if (begin > 0 && IsJavaScriptsFrame(lines[begin - 1])) begin = header_above(begin - 1);
  size_t last = at;
  const size_t limit = std::min(lines.size(), at + kMaxFields);
  for (size_t i = at; i < limit; ++i) {
    if (lines[i] == "}" || lines[i].starts_with("Node.js v")) last = i;
  }
  return {lines[begin] + '\n', true, CountAfter(lines, last)};
}

// Returns whether a line is "I1126 12:00:00.000000 77 client.h:80] text", as Google's logging
// library writes it. With 'F' as the first letter, it ends the program.
bool IsLineOfLog(const std::string& line, std::string_view letters) {
  constexpr size_t kDate = 5;
  return line.size() > kDate && letters.find(line[0]) != letters.npos && line[kDate] == ' ' &&
         std::all_of(line.begin() + 1, line.begin() + kDate,
                     [](unsigned char c) { return std::isdigit(c); }) &&
         line.find("] ") != line.npos;
}

bool IsFatalLine(const std::string& line) { return IsLineOfLog(line, "F"); }

// Its text may have several lines. The stack that may follow has no limit.
LastError FatalLineAt(const Lines& lines, size_t at) {
  constexpr size_t kMaxTextLines = 5;
  const auto is_stack = [&](size_t i) {
    return lines[i].starts_with("*** ") || lines[i].starts_with("    @ ");
  };
  size_t end = at + 1;
  const size_t limit = std::min(lines.size(), at + kMaxTextLines);
  while (end < limit && !is_stack(end) && !IsLineOfLog(lines[end], "IWEF")) ++end;
  size_t last = end - 1;
  while (last + 1 < lines.size() && is_stack(last + 1)) ++last;
  return {Joined(lines, at, end), true, CountAfter(lines, last)};
}

// Returns whether a line is Python's faulthandler's, which prints the stacks of all threads if a
// program has not ended after a time, and may end it.
bool IsOverdue(const std::string& line) {
  return line.starts_with("Timeout (") && line.ends_with(")!");
}

// The text ends with the innermost frame of the main thread, which is the last one.
LastError OverdueAt(const Lines& lines, size_t at) {
  const auto is_thread = [&](size_t i) { return lines[i].ends_with(" (most recent call first):"); };
  const auto is_frame = [&](size_t i) { return lines[i].starts_with("  "); };
  size_t innermost = at;
  size_t last = at;
  for (size_t i = at + 1; i < lines.size(); ++i) {
    if (is_frame(i) && is_thread(i - 1)) innermost = i;
    if (is_frame(i) || is_thread(i)) last = i;
    if (last != i && !lines[i].empty()) break;
  }
  std::string text = lines[at] + '\n';
  if (innermost > at) text += lines[innermost] + '\n';
  return {text, true, CountAfter(lines, last)};
}

// Returns whether a line is UCX's about an error, mostly of a connection, at which it ends the
// program by a signal.
bool IsUcxsLastError(const std::string& line) {
  return line.find("UCX ") != std::string::npos &&
         line.find("will not be handled since no error callback") != std::string::npos;
}

// The stack that may follow has no limit, and a line of "=" at its end.
LastError UcxsErrorAt(const Lines& lines, size_t at) {
  size_t last = lines.size() - 1;
  while (last > at && !lines[last].starts_with("======")) --last;
  return {lines[at] + '\n', true, CountAfter(lines, last)};
}

LastError ErrorOfLastLines(Lines lines) {
  std::erase(lines, "");
  if (!lines.empty() && IsException(lines.back())) return {lines.back() + '\n', true};
  size_t begin = lines.size() - std::min(lines.size(), kLastLines);
  return {Joined(lines, begin, lines.size())};
}

LastError FindIn(Lines lines) {
  std::optional<size_t> goroutine;  // of a panic that may be cut off
  for (size_t i = lines.size(); i-- > 0;) {
    if (IsRunningGoroutine(lines[i])) goroutine = i;
    if (IsGosPanic(lines[i])) return GosPanicAt(lines, i);
    if (IsRustsPanic(lines[i])) return RustsPanicAt(lines, i);
    if (lines[i].find(kTerminate) != std::string::npos) return TerminateAt(lines, i);
    if (IsTraceback(lines[i])) return ExceptionAt(lines, i);
    if (lines[i].find(kJavasThread) != std::string::npos) return JavasExceptionAt(lines, i);
    if (lines[i].starts_with(kDotNets)) return DotNetsExceptionAt(lines, i);
    if (lines[i] == kRsEnd) return RsErrorAt(lines, i);
    if (IsFatalLine(lines[i])) return FatalLineAt(lines, i);
    if (IsOverdue(lines[i])) return OverdueAt(lines, i);
    if (IsUcxsLastError(lines[i])) return UcxsErrorAt(lines, i);
    if (IsJavaScriptsFrame(lines[i])) return JavaScriptsErrorAt(lines, i);
  }
  if (goroutine) return {Joined(lines, *goroutine, std::min(lines.size(), *goroutine + 3)), true};
  return ErrorOfLastLines(std::move(lines));
}

}  // namespace

LastError FindLastError(std::string_view standard_error) { return FindIn(LinesOf(standard_error)); }

LastError LastLinesError(std::string_view standard_error) {
  return ErrorOfLastLines(LinesOf(standard_error));
}

bool EndedWithException(const LastError& error) {
  return error.is_exception && error.lines_after <= kMaxLinesAfter;
}

ShownLines LastLinesWithException(std::string_view output, size_t count) {
  Lines lines = AllLines(output);
  const size_t all = lines.size();
  lines = WithoutExitNoise(std::move(lines));
  const LastError error = FindIn(Shortened(lines));
  const size_t most_after = count / 2;
  if (EndedWithException(error)) {
    for (auto after = static_cast<size_t>(error.lines_after); after > most_after;) {
      if (!lines.back().empty()) --after;
      lines.pop_back();
    }
  }
  const size_t left_out = all - lines.size();
  lines.erase(lines.begin(),
              lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), count)));
  return {std::move(lines), left_out};
}

std::string SanitizerError(std::string_view standard_error) {
  for (std::string& line : LinesOf(standard_error)) {
    const bool is_report = line.find("Sanitizer: ") != line.npos && line.starts_with("==");
    if (is_report) return std::move(line);
  }
  return "";
}

}  // namespace rankrun::agent
