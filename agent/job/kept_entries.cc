#include "agent/job/kept_entries.h"

#include <algorithm>
#include <functional>

namespace rankrun::agent {

std::vector<std::string> EntriesToRemove(std::vector<KeptEntry> entries,
                                         std::chrono::system_clock::time_point now,
                                         size_t max_kept) {
  std::ranges::sort(entries, std::greater{}, &KeptEntry::changed);
  std::vector<std::string> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_old = IsTooOld(entries[i].changed, now);
    if (is_old || i >= max_kept) names.push_back(entries[i].name);
  }
  return names;
}

}  // namespace rankrun::agent
