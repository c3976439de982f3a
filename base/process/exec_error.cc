#include "base/process/exec_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/process/executable.h"

namespace rankrun {
namespace {

namespace fs = std::filesystem;

// More interpreters in a row than the kernel follows.
constexpr int kMaxInterpreters = 5;

// The kernel's limit for one argument or variable, including its final zero.
constexpr size_t kMaxString = 131072;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool MayExecute(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

// Returns the first folder on the way to `path` that does not satisfy
// `condition`.
template <typename Condition>
std::optional<std::string> FirstFolder(const std::string& path, Condition condition) {
  fs::path folder;
  for (const fs::path& part : fs::path(path).parent_path()) {
    folder /= part;
    if (!condition(folder.string())) return folder.string();
  }
  return std::nullopt;
}

}  // namespace

std::string WhyNotThere(const std::string& path) {
  std::error_code ignored;
  if (fs::is_symlink(path, ignored)) {
    return "it is a link to " + fs::read_symlink(path, ignored).string() + ", which does not exist";
  }
  auto missing = FirstFolder(path, Exists);
  return missing ? "no such file: there is no folder " + *missing : "no such file";
}

namespace {

// Explains ENOENT for an existing file: something that it names is missing.
std::string WhyInterpreterIsNotThere(const std::string& path) {
  std::string file = path;
  for (int depth = 0; depth < kMaxInterpreters; ++depth) {
    Executable executable = ReadExecutable(file);
    if (executable.interpreter.empty()) break;
    const std::string& interpreter = executable.interpreter;
    if (Exists(interpreter)) {
      file = interpreter;
      continue;
    }
    if (interpreter.ends_with('\r')) {
      return "the first line of " + file + " ends in a carriage return: give it Unix line ends";
    }
    if (executable.kind == Executable::Kind::kScript) {
      return "the first line of " + file + " names the interpreter " + interpreter +
             ", which does not exist";
    }
    return file + " needs the loader " + interpreter +
           ", which does not exist: it was built for another system";
  }
  return "it, or an interpreter that it needs, does not exist";
}

std::string WhyForbidden(const std::string& path) {
  auto closed = FirstFolder(path, MayExecute);
  if (closed) return "no permission to enter the folder " + *closed;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return "Permission denied";
  if (S_ISDIR(status.st_mode)) return "it is a folder";
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  struct statvfs system;
  if (statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0) {
    return "its file system is mounted noexec";
  }
  if (!MayExecute(path)) return "no permission to execute it (chmod +x)";
  std::string interpreter = ReadExecutable(path).interpreter;
  if (interpreter.empty()) return "Permission denied";
  return "its interpreter " + interpreter + ": " + WhyForbidden(interpreter);
}

std::string WhyNoProgram(const std::string& path) {
  std::string file = path;
  std::string whose = "it";
  Executable executable = ReadExecutable(file);
  for (int depth = 0; depth < kMaxInterpreters && !executable.interpreter.empty(); ++depth) {
    if (executable.kind != Executable::Kind::kScript) break;
    file = executable.interpreter;
    whose = "its interpreter " + file;
    executable = ReadExecutable(file);
  }
  switch (executable.kind) {
    case Executable::Kind::kUnreadable:
      return whose + " is not a program that this system can execute";
    case Executable::Kind::kEmpty:
      return whose + " is empty";
    case Executable::Kind::kScript:  // without an interpreter after #!
    case Executable::Kind::kText:
      return whose + " is a script whose first line is not #! and an interpreter";
    case Executable::Kind::kWindows:
      return whose + " is a program for Windows";
    case Executable::Kind::kMacOs:
      return whose + " is a program for macOS";
    case Executable::Kind::kOther:
      return whose + " is not a program: neither ELF nor a script";
    case Executable::Kind::kElf:
      break;
  }
  if (executable.machine != OwnMachine()) {
    return whose + " is a program for " + executable.machine + ", this machine is " + OwnMachine();
  }
  return whose + " is an ELF file that cannot be executed: damaged, or an object file";
}

// Names the string, or else the totals, that exceed the kernel's limits.
std::string WhyTooLong(const SpawnSpec& spec) {
  auto longest = [](const std::vector<std::string>& strings) {
    return std::ranges::max_element(strings, {}, &std::string::size);
  };
  auto argument = longest(spec.arguments);
  if (argument != spec.arguments.end() && argument->size() >= kMaxString) {
    return "argument " + std::to_string(argument - spec.arguments.begin()) + " has " +
           std::to_string(argument->size()) + " bytes, at most " + std::to_string(kMaxString - 1) +
           " are possible";
  }
  auto variable = longest(spec.environment);
  if (variable != spec.environment.end() && variable->size() >= kMaxString) {
    return "the variable " + variable->substr(0, variable->find('=')) + " has " +
           std::to_string(variable->size()) + " bytes, at most " + std::to_string(kMaxString - 1) +
           " are possible";
  }
  auto bytes = [](const std::vector<std::string>& strings) {
    size_t sum = 0;
    for (const std::string& text : strings) sum += text.size() + 1 + sizeof(char*);
    return sum;
  };
  return "its arguments take " + std::to_string(bytes(spec.arguments)) +
         " bytes and its environment " + std::to_string(bytes(spec.environment)) +
         ", more than the system allows (a quarter of ulimit -s, at most 6 MiB)";
}

std::string WhyLoop(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0)
    return "too many interpreters in a row, each of them a script";
  return "too many links, or a loop of links";
}

std::string WhyNoFolder(const std::string& path) {
  auto file = FirstFolder(path, [](const std::string& part) {
    std::error_code ignored;
    return fs::is_directory(part, ignored);
  });
  return file ? *file + " is not a folder" : "Not a directory";
}

std::optional<std::string> Why(const SpawnSpec& spec, int failure) {
  const std::string& file = spec.file;
  switch (failure) {
    case ENOENT:
      return Exists(file) ? WhyInterpreterIsNotThere(file) : WhyNotThere(file);
    case EACCES:
      return WhyForbidden(file);
    case ENOEXEC:
    case ELIBBAD:
      return WhyNoProgram(file);
    case E2BIG:
      return WhyTooLong(spec);
    case ETXTBSY:
      return "a process has it open for writing (is it being copied or built?)";
    case ELOOP:
      return WhyLoop(file);
    case ENOTDIR:
      return WhyNoFolder(file);
    default:
      return std::nullopt;
  }
}

}  // namespace

Error ExplainExecError(const SpawnSpec& spec, int failure) {
  Error error = SystemError("start " + spec.file, failure);
  if (auto why = Why(spec, failure)) error.message = "start " + spec.file + ": " + *why;
  return error;
}

}  // namespace rankrun
