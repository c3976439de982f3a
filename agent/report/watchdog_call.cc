#include "agent/report/watchdog_call.h"

#include <charconv>
#include <string>

#include "base/find_last.h"

namespace rankrun::agent {
namespace {

// Removes `text` to the end of `part`. Returns whether it has that part.
bool SkipTo(std::string_view& text, std::string_view part) {
  size_t at = text.find(part);
  if (at == text.npos) return false;
  text.remove_prefix(at + part.size());
  return true;
}

// "[PG ID 0 PG GUID 0(default_pg) Rank 2] ...": "0(default_pg)"; empty without one.
std::string GroupIn(std::string_view line) {
  if (!SkipTo(line, "PG GUID ")) return "";
  return std::string(line.substr(0, line.find(" Rank ")));
}

}  // namespace

std::optional<GroupCall> CallInWatchdogText(std::string_view output) {
  constexpr std::string_view kTimeOut = "Watchdog caught collective operation timeout: WorkNCCL(";
  size_t at = FindLast(output, kTimeOut);
  if (at == output.npos) return std::nullopt;
  size_t line_begin = output.rfind('\n', at) + 1;  // npos + 1 is 0
  std::string group = GroupIn(output.substr(line_begin, at - line_begin));
  std::string_view rest = output.substr(at + kTimeOut.size());
  rest = rest.substr(0, rest.find('\n'));
  int64_t sequence = 0;
  if (!SkipTo(rest, "SeqNum=")) return std::nullopt;
  auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), sequence);
  if (problem != std::errc() || sequence < 0 || !SkipTo(rest, "OpType=")) return std::nullopt;
  return GroupCall{.group = std::move(group),
                   .what = std::string(rest.substr(0, rest.find_first_of(",) "))),
                   .sequence = sequence};
}

}  // namespace rankrun::agent
