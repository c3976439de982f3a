#include "agent/report/logged_error.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/report/last_error.h"
#include "agent/report/lost_peer.h"

namespace rankrun::agent {
namespace {

constexpr size_t kNearLines = 20;  // before the last error
constexpr std::string_view kErrors[] = {"error", "exception", "fatal", "out of memory"};
constexpr std::string_view kNoErrors[] = {"userwarning", "futurewarning", "deprecat"};
constexpr std::string_view kHeaders[] = {"Traceback (most recent call last)",
                                         "terminate called after throwing"};

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

// Returns where the output about the last error begins.
size_t BeginOf(const LastError& last, std::string_view output) {
  const size_t at = output.rfind(FirstLine(last.text));
  if (at == output.npos) return 0;
  size_t begin = output.npos;
  for (std::string_view header : kHeaders) {
    const size_t found = output.rfind(header, at);
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

bool ReportsError(std::string_view line) {
  std::string lower(line);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](std::string_view part) { return lower.find(part) != lower.npos; };
  return std::ranges::any_of(kErrors, has) && std::ranges::none_of(kNoErrors, has) &&
         !IsAboutPeer(line);
}

}  // namespace

std::string LoggedError(std::string_view standard_error) {
  const LastError last = FindLastError(standard_error);
  if (IsNear(last)) standard_error = standard_error.substr(0, BeginOf(last, standard_error));
  const LastError caught = FindLastError(standard_error);
  if (IsNear(caught)) {
    return IsAboutPeer(caught.text) ? "" : FirstLine(caught.text);
  }
  std::vector<std::string> lines = LastLines(standard_error, kNearLines);
  const auto found = std::find_if(lines.rbegin(), lines.rend(), ReportsError);
  return found == lines.rend() ? "" : std::move(*found);
}

}  // namespace rankrun::agent
