#include "agent/report/error_file.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "agent/report/regular_file.h"
#include "base/own_file.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using nlohmann::json;

// Limits, because a program may write anything there. Copies of JSON recurse.
constexpr size_t kMaxBytes = 1024 * 1024;
constexpr int kMaxLevels = 32;

// Returns an object with a message, or null.
json Parse(const std::string& content) {
  bool is_deep = false;
  auto check = [&is_deep](int level, json::parse_event_t, json&) {
    is_deep |= level > kMaxLevels;
    return !is_deep;  // drops the value
  };
  json object = json::parse(content, check, /*allow_exceptions=*/false);
  bool has_message = !is_deep && object.is_object() && object.contains("message");
  return has_message ? std::move(object) : json();
}

}  // namespace

std::optional<std::string> ReadErrorFile(const std::string& path) {
  auto content = ReadRegularFile(path, kMaxBytes);
  json object = content ? Parse(*content) : json();
  if (object.is_null()) return std::nullopt;
  const json& message = object["message"];
  if (message.is_string()) return message.get<std::string>();
  if (!message.is_object() || !message.contains("message")) return std::nullopt;
  const json& text = message["message"];
  return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
}

std::optional<std::string> WithErrorCode(const std::string& content, int error_code) {
  json object = Parse(content);
  if (object.is_null()) return std::nullopt;
  if (object["message"].is_string()) return content;
  if (!object["message"].is_object()) return std::nullopt;
  object["message"]["errorCode"] = error_code;
  return object.dump();
}

Result<void> CopyErrorFile(const std::string& from, const std::string& to, int error_code) {
  auto content = ReadRegularFile(from, kMaxBytes);
  auto copy = content ? WithErrorCode(*content, error_code) : std::nullopt;
  if (!copy) return {};
  constexpr const char* kAction = "copy an error file to TORCHELASTIC_ERROR_FILE";
  auto file = OpenOwnFile(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY);
  if (!file) return std::move(file).error().In(kAction);
  if (auto written = TryWriteAll(file->get(), *copy); !written) {
    return std::move(written).error().In(to).In(kAction);
  }
  return {};
}

}  // namespace rankrun::agent
