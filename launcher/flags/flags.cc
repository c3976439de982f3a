#include "launcher/flags/flags.h"

#include <vector>

#include "launcher/flags/flag_groups.h"

namespace rankrun::launcher {

std::span<const Flag> Flags() {
  static const std::vector<Flag> kFlags = [] {
    std::vector<Flag> flags;
    for (std::span<const Flag> part :
         {JobFlags(), NodeFlags(), OutputFlags(), SupervisionFlags()}) {
      flags.insert(flags.end(), part.begin(), part.end());
    }
    return flags;
  }();
  return kFlags;
}

FlagTable RankrunFlags(std::string_view command) { return {.command = command, .flags = Flags()}; }

}  // namespace rankrun::launcher
