#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "launcher/flags/flags.h"
#include "launcher/plan/command_line.h"

// Settings made with the table of rankrun.
namespace rankrun::launcher {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

inline Environment EnvironmentOf(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

inline Settings SettingsOf(const Words& flags, const Variables& variables = {}) {
  auto arguments = ReadArguments(kRankrun, flags);
  EXPECT_TRUE(arguments) << arguments.error().message;
  if (!arguments) return {};
  auto line = CollectSettings(kRankrun, std::move(*arguments),
                              {.environment = EnvironmentOf(variables),
                               .read_file = [](const std::string&) { return std::string("{}"); },
                               .change_folder = [](const std::string&) { return Result<void>(); }});
  EXPECT_TRUE(line) << line.error().message;
  return line ? line->settings : Settings();
}

}  // namespace rankrun::launcher
