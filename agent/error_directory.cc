#include "agent/error_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace rankrun::agent {
namespace {

using nlohmann::json;

std::string FileName(const std::string& folder, int attempt, int local_rank,
                     const std::string& ending) {
  return folder + "/attempt_" + std::to_string(attempt) + "_local_rank_" +
         std::to_string(local_rank) + ending;
}

}  // namespace

Result<ErrorDirectory> ErrorDirectory::Create() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = parent != nullptr && *parent != '\0' ? parent : "/tmp";
  // Workers may change their folder.
  std::error_code relative;
  if (auto absolute = std::filesystem::absolute(path, relative); !relative) path = absolute;
  path += "/rankrun-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return SystemError("create the folder " + path, errno);
  return ErrorDirectory(std::move(path));
}

ErrorDirectory::ErrorDirectory(ErrorDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}

ErrorDirectory::~ErrorDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;  // a folder that cannot be removed harms nobody
  if (keep_) {
    std::filesystem::remove(path_, ignored);  // if it is empty
  } else {
    std::filesystem::remove_all(path_, ignored);
  }
}

std::string ErrorDirectory::ErrorFile(int attempt, int local_rank) const {
  return FileName(path_, attempt, local_rank, ".error.json");
}

std::string ErrorDirectory::StderrFile(int attempt, int local_rank) const {
  return FileName(path_, attempt, local_rank, ".stderr");
}

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
