#include "agent/preload/preload_texts.h"

#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

// Each byte as the character of that number, because arguments and environments may be no UTF-8.
std::string BytesAsCharacters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xC0 | (value >> 6));
      text += static_cast<char>(0x80 | (value & 0x3F));
    }
  }
  return text;
}

Json ListOf(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(BytesAsCharacters(text));
  return list;
}

// Infinity is -1, as in Python's module resource.
Json LimitOf(const std::optional<rlim_t>& limit) {
  if (!limit) return nullptr;
  return *limit == RLIM_INFINITY ? Json(-1) : Json(*limit);
}

Error Unexpected(const std::string& text) {
  return {ErrorCode::kMismatch, "it sent " + text.substr(0, 200)};
}

Json Parsed(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

std::string EncodeForkOrder(const SpawnSpec& spec, size_t options) {
  Json order{{"arguments", ListOf(spec.arguments)},
             {"options", options},
             {"environment", ListOf(spec.environment)},
             {"open_files", LimitOf(spec.open_files)},
             {"core_bytes", LimitOf(spec.core_bytes)},
             {"oom_score_adj", nullptr},
             {"cpus", spec.cpus}};
  if (spec.oom_score_adj) order["oom_score_adj"] = *spec.oom_score_adj;
  return order.dump();
}

Result<PreloadResult> PreloadResult::Parse(const std::string& text) {
  const Json answer = Parsed(text);
  const auto notes = answer.is_object() ? answer.find("notes") : answer.end();
  if (notes == answer.end() || !notes->is_array()) return Unexpected(text);
  PreloadResult result;
  for (const Json& note : *notes) {
    if (!note.is_string()) return Unexpected(text);
    result.notes.push_back(note.get<std::string>());
  }
  if (auto unsafe = answer.find("unsafe"); unsafe != answer.end() && unsafe->is_string()) {
    result.unsafe = unsafe->get<std::string>();
  }
  return result;
}

Result<std::string> ParseChangedFile(const std::string& text) {
  const Json answer = Parsed(text);
  const auto changed = answer.is_object() ? answer.find("changed") : answer.end();
  if (changed == answer.end()) return Unexpected(text);
  return changed->is_string() ? changed->get<std::string>() : std::string();
}

Result<pid_t> ParseForkedPid(const std::string& text, const SpawnSpec& spec) {
  const Json answer = Parsed(text);
  if (!answer.is_object()) return Unexpected(text);
  auto pid = answer.find("pid");
  if (pid != answer.end() && pid->is_number_integer() && pid->get<pid_t>() > 0) {
    return pid->get<pid_t>();
  }
  auto step = answer.find("step");
  auto number = answer.find("errno");
  const bool is_failure = step != answer.end() && step->is_string() && number != answer.end() &&
                          number->is_number_integer();
  if (!is_failure) return Unexpected(text);
  std::string what = "start " + spec.file;
  if (*step == "bind") what += ": bind to CPUs " + FormatCpus(spec.cpus);
  return SystemError(what, number->get<int>());
}

}  // namespace rankrun::agent
