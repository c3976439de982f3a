// A file of --config.

#include "launcher/flags/flags.h"
#include "launcher/settings/config_file.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  static const launcher::FlagTable table = launcher::RankrunFlags();
  auto read = launcher::ReadConfig(table, std::string(input), "job.json");
  if (read) return "";
  const std::string& message = read.error().message;
  if (!message.starts_with("job.json")) return "the message does not name the file: " + message;
  return message.find('\n') == std::string::npos ? "" : "the message has several lines: " + message;
}

}  // namespace rankrun::test
