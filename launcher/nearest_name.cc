#include "launcher/nearest_name.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankrun::launcher {
namespace {

// How many single-character edits lead from one word to the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> names) {
  if (names.empty()) return std::nullopt;
  // What it begins is nearer than what it resembles.
  auto distance = [&](std::string_view name) {
    bool begins = !typed.empty() && name.starts_with(typed);
    return begins ? 0 : EditDistance(typed, name);
  };
  std::string_view nearest = *std::ranges::min_element(names, {}, distance);
  if (distance(nearest) > std::max<size_t>(2, typed.size() / 3)) return std::nullopt;
  return nearest;
}

}  // namespace rankrun::launcher
