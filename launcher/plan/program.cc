#include "launcher/plan/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <span>

#include "base/process/exec_error.h"

namespace rankrun::launcher {
namespace {

constexpr const char* kStandardPath = "/usr/local/bin:/usr/bin:/bin";
const std::array<std::string, 2> kPythons = {"python3", "python"};

bool IsFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool IsFolder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsLink(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

bool IsExecutable(const std::string& path) {
  return IsFile(path) && access(path.c_str(), X_OK) == 0;
}

// Returns the first of `names` that is in `folder`, with its path.
std::optional<std::string> FindIn(const std::string& folder, std::span<const std::string> names) {
  for (const std::string& name : names) {
    std::string candidate = folder + "/" + name;
    if (IsExecutable(candidate)) return candidate;
  }
  return std::nullopt;
}

// Searches the folders of PATH in their order, each for all `names`.
std::optional<std::string> FindInPath(std::span<const std::string> names,
                                      const Environment& environment) {
  std::string path = environment("PATH").value_or(kStandardPath);
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    std::string folder = path.substr(begin, end - begin);
    if (auto found = FindIn(folder.empty() ? "." : folder, names)) return found;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<std::string> FindInPath(const std::string& name, const Environment& environment) {
  return FindInPath(std::span(&name, 1), environment);
}

Result<std::string> FindFile(const std::string& name, const Environment& environment) {
  bool has_slash = name.find('/') != std::string::npos;
  if (IsFile(name)) return has_slash ? name : "./" + name;
  if (auto found = FindInPath(name, environment); found && !has_slash) return *found;
  if (IsFolder(name)) return Error{ErrorCode::kInvalid, name + " is a folder, want a program"};
  std::string why = WhyNotThere(name);
  if (has_slash || IsLink(name)) return Error{ErrorCode::kNotFound, name + ": " + why};
  return Error{ErrorCode::kNotFound,
               name + ": no such file in the current folder, nor such a program in PATH"};
}

// Returns the Python of the environment (venv or conda) in whose bin folder the
// file is.
std::optional<std::string> PythonBeside(const std::string& file) {
  std::string folder = file.substr(0, file.rfind('/'));
  bool is_environment = IsFile(folder + "/../pyvenv.cfg") || IsFolder(folder + "/../conda-meta");
  return is_environment ? FindIn(folder, kPythons) : std::nullopt;
}

// Python of the environment by whose link or program the user started us.
struct PythonOfCaller {
  std::string file;
  bool is_behind_link;  // of another folder, as pipx makes them
};

// Follows a chain of links file by file, because each of them may be in an environment.
std::optional<PythonOfCaller> FindPythonOfCaller(const std::string& started_as,
                                                 const Environment& environment) {
  constexpr int kMaxLinks = 40;  // as the kernel
  if (started_as.empty()) return std::nullopt;
  bool has_slash = started_as.find('/') != std::string::npos;
  auto file = has_slash ? std::optional(started_as) : FindInPath(started_as, environment);
  for (int links = 0; file && links <= kMaxLinks; ++links) {
    if (auto python = PythonBeside(*file)) return PythonOfCaller{*python, links > 0};
    std::error_code error;
    std::filesystem::path target = std::filesystem::read_symlink(*file, error);
    if (error) return std::nullopt;  // the end of the chain
    target = std::filesystem::path(*file).parent_path() / target;
    file = std::filesystem::canonical(target.parent_path(), error) / target.filename();
    if (error) return std::nullopt;
  }
  return std::nullopt;
}

// Returns why a path is no program that can run.
std::string WhyNotRun(const std::string& path) {
  if (IsFolder(path)) return "is a folder, want a program";
  if (IsFile(path)) return "no exec permission";
  return WhyNotThere(path);
}

Result<std::string> ChosenPython(const std::string& chosen, const Environment& environment) {
  bool has_slash = chosen.find('/') != std::string::npos;
  if (has_slash && IsExecutable(chosen)) return chosen;
  if (has_slash) {
    const bool is_there = IsFile(chosen) || IsFolder(chosen);
    return Error{is_there ? ErrorCode::kInvalid : ErrorCode::kNotFound,
                 "PYTHON_EXEC is \"" + chosen + "\": " + WhyNotRun(chosen)};
  }
  if (auto found = FindInPath(chosen, environment)) return *found;
  return Error{ErrorCode::kNotFound, "PYTHON_EXEC is \"" + chosen + "\": not found in PATH"};
}

// The Python that runs a program.
struct Python {
  std::string file;
  std::string warning = {};
};

Result<Python> PythonOfWorkers(const std::string& started_as, const Environment& environment) {
  if (auto chosen = environment("PYTHON_EXEC")) {
    auto found = ChosenPython(*chosen, environment);
    if (!found) return std::move(found).error();
    return Python{std::move(*found)};
  }
  auto virtual_env = environment("VIRTUAL_ENV");
  auto of_virtual_env = virtual_env ? FindIn(*virtual_env + "/bin", kPythons) : std::nullopt;
  if (auto python = FindPythonOfCaller(started_as, environment)) {
    // The environment of a tool alone has no program's modules.
    if (python->is_behind_link && of_virtual_env) return Python{std::move(*of_virtual_env)};
    return Python{std::move(python->file)};
  }
  std::string stale;
  if (virtual_env && !of_virtual_env) {
    stale = "VIRTUAL_ENV is \"" + *virtual_env + "\": it has no bin/python";
  }
  if (auto found = FindInPath(kPythons, environment)) {
    if (!stale.empty()) stale += "; using " + *found;
    return Python{std::move(*found), std::move(stale)};
  }
  if (of_virtual_env) return Python{std::move(*of_virtual_env)};
  return Error{ErrorCode::kNotFound, "no python3 or python in PATH" +
                                         (stale.empty() ? "" : ", and " + stale) +
                                         " (set PYTHON_EXEC, or use --no-python)"};
}

Result<ResolvedProgram> UnderPython(const std::vector<std::string>& words,
                                    const ProgramRequest& request, const Environment& environment) {
  auto python = PythonOfWorkers(request.started_as, environment);
  if (!python) return std::move(python).error();
  agent::Program program{.file = python->file, .arguments = {python->file, "-u"}};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  return ResolvedProgram{std::move(program), true, std::move(python->warning)};
}

}  // namespace

Result<ResolvedProgram> ResolveProgram(const ProgramRequest& request,
                                       const Environment& environment) {
  std::vector<std::string> words = request.program;
  if (request.module) {
    words.insert(words.begin(), "-m");
    return UnderPython(words, request, environment);
  }
  if (request.always_python && !request.no_python) {
    if (!IsFile(words[0]) && !IsFolder(words[0])) {
      return Error{ErrorCode::kNotFound, words[0] + ": " + WhyNotThere(words[0])};
    }
    return UnderPython(words, request, environment);
  }
  auto file = FindFile(words[0], environment);
  if (!file) return std::move(file).error();
  bool executable = access(file->c_str(), X_OK) == 0;
  if (request.no_python && !executable) {
    return Error{ErrorCode::kInvalid,
                 words[0] + ": has no exec permission, and --no-python forbids Python"};
  }
  bool python = !request.no_python && (words[0].ends_with(".py") || !executable);
  if (!python) {
    bool is_python = file->substr(file->rfind('/') + 1).starts_with("python");
    return ResolvedProgram{{.file = *file, .arguments = std::move(words)}, is_python};
  }
  words[0] = *file;
  return UnderPython(words, request, environment);
}

Result<std::string> FindPython(const std::string& started_as, const Environment& environment) {
  auto python = PythonOfWorkers(started_as, environment);
  if (!python) return std::move(python).error();
  return std::move(python->file);
}

}  // namespace rankrun::launcher
