#include "agent/coordination/cause_history.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr size_t kMaxRows = 8;  // the text is for people, and the last ones matter

std::string AttemptsText(const FailureRow& row) {
  const std::string first = std::to_string(row.first_attempt);
  if (row.first_attempt == row.last_attempt) return "attempt " + first;
  const std::string range = "attempts " + first + "-" + std::to_string(row.last_attempt);
  const bool has_gaps = row.failures <= row.last_attempt - row.first_attempt;
  return has_gaps ? std::to_string(row.failures) + " of " + range : range;
}

}  // namespace

void AddFailure(std::vector<FailureRow>& rows, uint64_t node, std::string_view name, int attempt) {
  const bool is_same = !rows.empty() && rows.back().node == node && rows.back().name == name;
  if (!is_same) {
    if (rows.size() == kMaxRows) rows.erase(rows.begin());
    rows.push_back({.node = node, .name = std::string(name), .first_attempt = attempt});
  }
  rows.back().last_attempt = attempt;
  rows.back().failures += 1;
}

std::string FailuresText(const std::vector<FailureRow>& rows) {
  const bool is_single = rows.empty() || (rows.size() == 1 && rows[0].failures == 1);
  if (is_single) return "";
  std::string text;
  for (const FailureRow& row : rows) {
    text += (text.empty() ? "" : ", ") + row.name + " (" + AttemptsText(row) + ")";
  }
  return text;
}

std::string FailuresInARow(int failures) {
  return failures == 1 ? "1 failure" : std::to_string(failures) + " failures in a row";
}

int CauseHistory::ReplacedAfter(uint64_t node) const {
  auto found = std::ranges::find(replaced, node, &ReplacedNode::node);
  return found == replaced.end() ? 0 : found->failures;
}

void CauseHistory::RecordReplaced(uint64_t node, int failures) {
  std::erase_if(replaced, [node](const ReplacedNode& earlier) { return earlier.node == node; });
  replaced.push_back({node, failures});
}

}  // namespace rankrun::agent
