#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace rankrun::agent {

// Reports and folders of ended jobs stay so long.
constexpr std::chrono::hours kKeptAge{7 * 24};

// Returns whether something that was left then has stayed long enough. Pure.
inline bool IsTooOld(std::chrono::system_clock::time_point left,
                     std::chrono::system_clock::time_point now) {
  return now - left > kKeptAge;
}

// A file or folder that a job has left for its user.
struct KeptEntry {
  std::string name;
  std::chrono::system_clock::time_point changed;
};

// Returns the names of entries that are too old, and of the oldest beyond `max_kept`. Pure.
std::vector<std::string> EntriesToRemove(std::vector<KeptEntry> entries,
                                         std::chrono::system_clock::time_point now,
                                         size_t max_kept);

}  // namespace rankrun::agent
