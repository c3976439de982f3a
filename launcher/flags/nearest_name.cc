#include "launcher/flags/nearest_name.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankrun::launcher {
namespace {

// A common start of this many letters outweighs the edit distance.
constexpr size_t kTellingStart = 4;

// Returns the edit distance of two words. An edit inserts, removes or replaces a
// letter, or exchanges two neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, std::move(row));
  }
  return last[b.size()];
}

size_t CommonStart(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> names) {
  if (names.empty()) return std::nullopt;
  auto distance = [&](std::string_view name) {
    bool begins = !typed.empty() && name.starts_with(typed);
    return begins ? 0 : EditDistance(typed, name);
  };
  // Prefer a longer telling start, then a smaller distance.
  auto rank = [&](std::string_view name) {
    size_t start = CommonStart(typed, name);
    return std::pair(start < kTellingStart ? 0 : -static_cast<ptrdiff_t>(start), distance(name));
  };
  std::string_view nearest = *std::ranges::min_element(names, {}, rank);
  bool tells = CommonStart(typed, nearest) >= kTellingStart;
  if (!tells && distance(nearest) > typed.size() / 3) return std::nullopt;
  return nearest;
}

}  // namespace rankrun::launcher
