#include "launcher/flags/flag_table.h"

#include <algorithm>

#include "launcher/flags/text.h"

namespace rankrun::launcher {

std::vector<FlagGroup> GroupsOf(const FlagTable& table) {
  std::vector<FlagGroup> groups;
  for (const Flag& flag : table.flags) {
    std::string_view heading = flag.group.empty() ? "Flags" : flag.group;
    auto group = std::ranges::find(groups, heading, &FlagGroup::heading);
    if (group == groups.end()) group = groups.insert(group, {heading, {}});
    group->flags.push_back(&flag);
  }
  return groups;
}

std::optional<std::string> VariableNameOf(const Flag& flag, std::string_view prefix) {
  bool has_one = prefix == kPetPrefix ? flag.sources == FlagSources::kPet
                                      : flag.sources != FlagSources::kNowhere;
  if (!has_one) return std::nullopt;
  std::string name = Uppercase(std::string(flag.name));
  std::ranges::replace(name, '-', '_');
  return std::string(prefix) + name;
}

}  // namespace rankrun::launcher
