#include "base/roll_call.h"

#include "base/check.h"
#include "base/format.h"

namespace rankrun {

RollCall::RollCall(int participants, TimePoint since)
    : here_(static_cast<size_t>(participants), false), missing_(participants), since_(since) {}

bool RollCall::Arrive(int participant) {
  RANKRUN_CHECK(participant >= 0 && participant < participants(), "a participant out of range");
  auto place = here_.begin() + participant;
  if (*place) return false;
  *place = true;
  missing_ -= 1;
  return true;
}

std::vector<int> RollCall::Missing() const {
  std::vector<int> missing;
  for (int participant = 0; participant < participants(); ++participant) {
    if (!here_[static_cast<size_t>(participant)]) missing.push_back(participant);
  }
  return missing;
}

std::string RollCall::Count(TimePoint now) const {
  return std::to_string(present()) + " of " + std::to_string(participants()) + " present after " +
         FormatSeconds(now - since_);
}

std::string RollCall::Describe(TimePoint now, const std::string& noun) const {
  std::string text = Count(now);
  if (complete()) return text;
  return text + ", missing: " + noun + (noun.empty() ? "" : " ") + FormatRanks(Missing());
}

std::string FormatRanks(const std::vector<int>& ranks) {
  if (ranks.empty()) return "none";
  std::string text;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(ranks[last]);
    first = last + 1;
  }
  return text;
}

std::string RanksInWords(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks);
}

}  // namespace rankrun
