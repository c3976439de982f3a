#include "agent/report/json_log.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;

// Returns the first of these fields that is a text.
std::string_view TextOf(const json& object, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    const auto found = object.find(field);
    if (found != object.end() && found->is_string()) return found->get_ref<const std::string&>();
  }
  return {};
}

bool IsErrorLevel(std::string_view level) {
  constexpr std::string_view kLevels[] = {"ERROR", "CRITICAL", "FATAL"};
  const auto is_equal = [&](std::string_view name) {
    return std::ranges::equal(level, name, {}, [](unsigned char c) { return std::toupper(c); });
  };
  return std::ranges::any_of(kLevels, is_equal);
}

// Returns the line as it is if it is no error.
std::string PlainError(std::string_view line) {
  if (!line.starts_with('{')) return std::string(line);
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !IsErrorLevel(TextOf(object, {"level", "severity", "levelname"}))) {
    return std::string(line);
  }
  std::string text = "ERROR ";
  text += TextOf(object, {"message", "msg", "event"});
  if (auto exception = TextOf(object, {"exception", "exc_info"}); !exception.empty()) {
    text.append("\n").append(exception);
  }
  return text;
}

}  // namespace

std::string WithPlainErrors(std::string_view output) {
  std::string text;
  while (!output.empty()) {
    const size_t end = std::min(output.find('\n'), output.size());
    text += PlainError(output.substr(0, end));
    if (end < output.size()) text += '\n';
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return text;
}

}  // namespace rankrun::agent
