#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun::launcher {

// What the command line said, with the table's defaults for the rest.
struct Options {
  int workers = 1;
  int max_restarts = 0;
  std::chrono::milliseconds shutdown_timeout{25'000};
  std::chrono::milliseconds save_timeout{0};
  std::optional<std::chrono::milliseconds> time_limit;
  bool continue_on_failure = false;
  std::optional<std::vector<int>> end_signals;
  std::optional<std::string> master_addr;
  std::optional<uint16_t> master_port;
  std::optional<uint64_t> store_max_value;  // bytes
  bool no_python = false;
  bool module = false;
  bool help = false;
  bool version = false;
  std::vector<std::string> program;  // and its arguments
};

// Errors: kInvalid, one line that names the flag and what would be right.
Result<Options> ParseCommandLine(std::span<const std::string> arguments);

// The text of --help.
std::string HelpText();

}  // namespace rankrun::launcher
