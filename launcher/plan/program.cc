#include "launcher/plan/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/process/exec_error.h"

namespace rankrun::launcher {
namespace {

constexpr const char* kStandardPath = "/usr/local/bin:/usr/bin:/bin";

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

std::optional<std::string> FindInPath(const std::string& name, const Environment& environment) {
  std::string path = environment("PATH").value_or(kStandardPath);
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    std::string folder = path.substr(begin, end - begin);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsExecutable(candidate)) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
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
// user started us.
std::optional<std::string> PythonBeside(const std::string& started_as,
                                        const Environment& environment) {
  if (started_as.empty()) return std::nullopt;
  bool has_slash = started_as.find('/') != std::string::npos;
  auto file = has_slash ? std::optional(started_as) : FindInPath(started_as, environment);
  if (!file) return std::nullopt;
  std::string folder = file->substr(0, file->rfind('/'));
  bool is_environment = IsFile(folder + "/../pyvenv.cfg") || IsFolder(folder + "/../conda-meta");
  std::string python = folder + "/python";
  return is_environment && IsExecutable(python) ? std::optional(python) : std::nullopt;
}

Result<std::string> FindPython(const std::string& started_as, const Environment& environment) {
  if (auto chosen = environment("PYTHON_EXEC")) {
    bool has_slash = chosen->find('/') != std::string::npos;
    if (has_slash && IsExecutable(*chosen)) return *chosen;
    if (has_slash) {
      return Error{ErrorCode::kNotFound, "PYTHON_EXEC is \"" + *chosen + "\": no such program"};
    }
    if (auto found = FindInPath(*chosen, environment)) return *found;
    return Error{ErrorCode::kNotFound, "PYTHON_EXEC is \"" + *chosen + "\": not found in PATH"};
  }
  if (auto virtual_env = environment("VIRTUAL_ENV")) {
    std::string python = *virtual_env + "/bin/python";
    if (IsExecutable(python)) return python;
    return Error{ErrorCode::kNotFound,
                 "VIRTUAL_ENV is \"" + *virtual_env + "\": it has no bin/python"};
  }
  if (auto beside = PythonBeside(started_as, environment)) return *beside;
  if (auto found = FindInPath("python3", environment)) return *found;
  return Error{ErrorCode::kNotFound, "no python3 in PATH (set PYTHON_EXEC, or use --no-python)"};
}

Result<agent::Program> UnderPython(std::vector<std::string> words, const ProgramRequest& request,
                                   const Environment& environment) {
  auto python = FindPython(request.started_as, environment);
  if (!python) return std::move(python).error();
  agent::Program program{.file = *python, .arguments = {*python, "-u"}};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  return program;
}

}  // namespace

Result<agent::Program> ResolveProgram(const ProgramRequest& request,
                                      const Environment& environment) {
  std::vector<std::string> words = request.program;
  if (request.module) {
    words.insert(words.begin(), "-m");
    return UnderPython(std::move(words), request, environment);
  }
  if (request.always_python && !request.no_python) {
    if (!IsFile(words[0]) && !IsFolder(words[0])) {
      return Error{ErrorCode::kNotFound, words[0] + ": " + WhyNotThere(words[0])};
    }
    return UnderPython(std::move(words), request, environment);
  }
  auto file = FindFile(words[0], environment);
  if (!file) return std::move(file).error();
  bool executable = access(file->c_str(), X_OK) == 0;
  if (request.no_python && !executable) {
    return Error{ErrorCode::kInvalid,
                 words[0] + ": has no exec permission, and --no-python forbids Python"};
  }
  bool python = !request.no_python && (words[0].ends_with(".py") || !executable);
  if (!python) return agent::Program{.file = *file, .arguments = std::move(words)};
  words[0] = *file;
  return UnderPython(std::move(words), request, environment);
}

}  // namespace rankrun::launcher
