#include "agent/error_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace rankrun::agent {

using nlohmann::json;

std::optional<std::string> ReadErrorFile(const std::string& path) {
  std::ifstream file(path);
  json content;
  try {
    content = json::parse(file, nullptr, /*allow_exceptions=*/false);
  } catch (const std::ios_base::failure&) {
    return std::nullopt;  // libstdc++ throws when it cannot read: a folder, a broken disk
  }
  if (!content.is_object() || !content.contains("message")) return std::nullopt;
  const json& message = content["message"];
  if (message.is_string()) return message.get<std::string>();
  if (!message.is_object() || !message.contains("message")) return std::nullopt;
  const json& text = message["message"];
  return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
}

}  // namespace rankrun::agent
