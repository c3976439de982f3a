#include "comm/launch/launch_command.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string_view>

#include "comm/core/time_left.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDefaultShutdownTimeout{25'000};
// Time for rankrun itself, after that of the workers.
constexpr milliseconds kPatience{30'000};

std::string SecondsText(milliseconds duration) {
  std::string fraction = std::to_string(1000 + duration.count() % 1000).substr(1);
  return std::to_string(duration.count() / 1000) + "." + fraction;
}

// Returns whether rankrun reads `flag` as `name`: it accepts underscores and
// abbreviations.
bool Means(const std::string& flag, std::string_view name) {
  std::string given = flag.substr(0, flag.find('='));
  std::ranges::replace(given, '_', '-');
  return given.starts_with("--") && name.starts_with(given);
}

Result<void> CheckFlag(const std::string& flag) {
  std::string has = "LaunchSpec::flags has " + flag;
  if (flag == "--") return Error{ErrorCode::kInvalid, has + ": the program stands in program"};
  for (const char* ours : {"--events", "--lifeline"}) {
    if (!Means(flag, ours)) continue;
    return Error{ErrorCode::kInvalid, has + ", which the library itself needs"};
  }
  // LongestEnd needs these two.
  if (Means(flag, "--shutdown-timeout")) {
    return Error{ErrorCode::kInvalid, has + ": set LaunchSpec::shutdown_timeout"};
  }
  if (Means(flag, "--save-timeout")) {
    return Error{ErrorCode::kInvalid, has + ": set LaunchSpec::save_timeout"};
  }
  return {};
}

Result<void> Check(const LaunchSpec& spec) {
  auto wrong = [](const std::string& what) { return Error{ErrorCode::kInvalid, what}; };
  if (spec.program.empty() || spec.program[0].empty()) return wrong("LaunchSpec::program is empty");
  if (spec.workers < 1) {
    return wrong("LaunchSpec::workers is " + std::to_string(spec.workers) + ": want at least 1");
  }
  if (spec.max_restarts < 0) {
    return wrong("LaunchSpec::max_restarts is " + std::to_string(spec.max_restarts) +
                 ": want at least 0");
  }
  for (const std::string& flag : spec.flags) {
    if (auto checked = CheckFlag(flag); !checked) return checked;
  }
  return {};
}

bool IsExecutable(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Returns the paths of rankrun in an installation or a build with this library.
std::vector<std::string> BesideThisLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&BesideThisLibrary), &info) == 0) return {};
  std::error_code unreadable;
  std::filesystem::path library = std::filesystem::canonical(info.dli_fname, unreadable);
  if (unreadable) return {};
  std::filesystem::path folder = library.parent_path();
  std::vector<std::string> found;
  // For lib/; for lib/x86_64-linux-gnu/ as on Debian, and a folder of pip's --target; and for
  // lib/python3.N/site-packages/rankrun/lib/.
  for (const char* prefix : {"..", "../..", "../../../../.."}) {
    found.push_back((folder / prefix / "bin/rankrun").lexically_normal());
  }
  return found;
}

std::vector<std::string> InPath() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  std::vector<std::string> candidates;
  for (std::string folder; std::getline(folders, folder, ':');) {
    candidates.push_back((folder.empty() ? "." : folder) + "/rankrun");
  }
  return candidates;
}

// rankrun starts in LaunchSpec::directory, where a relative path would name
// another file.
std::string Absolute(const std::string& path) {
  std::error_code unknown;
  std::filesystem::path absolute = std::filesystem::absolute(path, unknown);
  return unknown ? path : absolute.string();
}

Result<std::string> Demand(const std::string& path, const std::string& origin) {
  if (IsExecutable(path)) return Absolute(path);
  return Error{ErrorCode::kInvalid, origin + " is " + path + ": no such executable file"};
}

}  // namespace

Result<std::vector<std::string>> CommandFor(const LaunchSpec& spec, const std::string& executable) {
  if (auto checked = Check(spec); !checked) return std::move(checked).error();
  std::vector<std::string> words{executable, "--nproc-per-node=" + std::to_string(spec.workers),
                                 "--max-restarts=" + std::to_string(spec.max_restarts)};
  auto add = [&](const std::string& flag, const std::string& value) {
    if (!value.empty()) words.push_back(flag + "=" + value);
  };
  auto seconds = [](const auto& duration) {
    return duration ? SecondsText(Bounded(*duration)) : "";
  };
  add("--shutdown-timeout", seconds(spec.shutdown_timeout));
  add("--save-timeout", seconds(spec.save_timeout));
  add("--timeout", seconds(spec.time_limit));
  add("--log-dir", spec.log_dir);
  words.insert(words.end(), spec.flags.begin(), spec.flags.end());
  add("--events", "/dev/fd/" + std::to_string(kEventsFd));
  add("--lifeline", std::to_string(kLifelineFd));
  words.push_back("--");
  words.insert(words.end(), spec.program.begin(), spec.program.end());
  return words;
}

milliseconds LongestEnd(const LaunchSpec& spec) {
  milliseconds stops = spec.shutdown_timeout.value_or(kDefaultShutdownTimeout);
  milliseconds saves = spec.save_timeout.value_or(stops);
  return Bounded(std::max(stops, saves)) + kPatience;
}

Result<std::vector<std::string>> EnvironmentFor(const LaunchSpec& spec,
                                                const std::vector<std::string>& own) {
  std::vector<std::string> environment;
  for (const std::string& entry : own) {
    if (!spec.environment.contains(entry.substr(0, entry.find('=')))) environment.push_back(entry);
  }
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return Error{ErrorCode::kInvalid,
                   "LaunchSpec::environment has \"" + name + "\", which cannot be a name"};
    }
    environment.push_back(name + "=" + value);
  }
  return environment;
}

Result<std::string> FindExecutable(const LaunchSpec& spec) {
  if (!spec.executable.empty()) return Demand(spec.executable, "LaunchSpec::executable");
  const char* typed = std::getenv("RANKRUN_EXECUTABLE");
  if (typed != nullptr && *typed != '\0') return Demand(typed, "RANKRUN_EXECUTABLE");
  std::vector<std::string> candidates = BesideThisLibrary();
  std::ranges::move(InPath(), std::back_inserter(candidates));
  auto found = std::ranges::find_if(candidates, IsExecutable);
  if (found != candidates.end()) return Absolute(*found);
  return Error{ErrorCode::kInvalid,
               "no rankrun beside this library nor in PATH; set LaunchSpec::executable or "
               "RANKRUN_EXECUTABLE"};
}

}  // namespace rankrun::comm
