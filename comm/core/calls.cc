#include "comm/core/calls.h"

#include <utility>

#include "base/roll_call.h"

namespace rankrun::comm {

std::string DescribeCalls(const CallsByRank& calls, const std::vector<int>& global_ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // in the order of first ranks
  for (size_t r = 0; r < calls.size(); ++r) {
    size_t at = 0;
    while (at < groups.size() && groups[at].first != calls[r]) ++at;
    if (at == groups.size()) groups.emplace_back(calls[r], std::vector<int>());
    groups[at].second.push_back(global_ranks[r]);
  }
  std::string text;
  for (const auto& [call, ranks] : groups) {
    if (!text.empty()) text += "; ";
    text += call.empty() ? "no call from " + RanksInWords(ranks)
                         : RanksInWords(ranks) + " called " + call;
  }
  return text;
}

}  // namespace rankrun::comm
