#include "agent/output/log_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "agent/output/folder_mark.h"
#include "agent/output/old_folders.h"
#include "base/log.h"
#include "base/own_path.h"
#include "base/random_bytes.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;

// Returns the end of `prefix` for mkdtemp: two random characters and the six
// that mkdtemp replaces, so that eight are random.
std::string WithEightRandom(const std::string& prefix) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  unsigned char random[2] = {};
  if (!FillRandom(random)) random[0] = random[1] = 0;
  return prefix + kLetters[random[0] % 32] + kLetters[random[1] % 32] + "XXXXXX";
}

// Returns a run's name as a single component of a path.
std::string FolderName(std::string run_id) {
  constexpr size_t kMaxName = 200;  // file systems allow 255
  std::ranges::replace(run_id, '/', '_');
  return run_id.substr(0, kMaxName) + "_";
}

Result<std::string> MakePrivateFolder(std::string path) {
  if (mkdtemp(path.data()) == nullptr) return SystemError("create the folder " + path, errno);
  return path;
}

Result<std::string> MakeTemporaryBase(const std::string& parent) {
  return MakePrivateFolder(Absolute(parent) + "/rankrun-XXXXXX");
}

}  // namespace

LogDirectory::Layout LogDirectory::LayoutFor(const OutputSpec& output) {
  bool has_files = std::ranges::any_of(output.workers, [](const WorkerOutput& worker) {
    return worker.standard_output.to_file || worker.standard_error.to_file;
  });
  return has_files || output.log_dir ? Layout::kFolderPerWorker : Layout::kFolderPerAttempt;
}

Result<LogDirectory> LogDirectory::CreateNamed(const std::string& base, const std::string& run_id) {
  std::string path = Absolute(base);
  auto refuse = [&](Error error) {
    return Error{ErrorCode::kInvalid, "--log-dir " + base + ": " + std::move(error.message)};
  };
  if (auto made = MakeFolders(path); !made) return refuse(std::move(made).error());
  ClaimFolder(path);
  auto run = MakePrivateFolder(WithEightRandom(path + "/" + FolderName(run_id)));
  if (!run) return refuse(std::move(run).error());
  return LogDirectory({.temporary_base = "", .path = std::move(*run)});
}

Result<LogDirectory> LogDirectory::CreateTemporary(const std::string& run_id, Layout layout) {
  constexpr char kDefault[] = "/tmp";
  const char* typed = std::getenv("TMPDIR");
  bool has_typed = typed != nullptr && *typed != '\0';
  auto base = MakeTemporaryBase(has_typed ? typed : kDefault);
  if (!base && has_typed) {
    Error first = base.error();
    base = MakeTemporaryBase(kDefault);
    if (!base) return first;
    LogWarn(first.message + "; using /tmp instead (set TMPDIR to a writable folder)");
  }
  if (!base) return std::move(base).error();
  auto run = MakePrivateFolder(WithEightRandom(*base + "/" + FolderName(run_id)));
  if (!run) return std::move(run).error();
  LogDirectory created({.temporary_base = std::move(*base), .path = std::move(*run)}, layout);
  created.Mark();
  return created;
}

LogDirectory::LogDirectory(LogDirectory&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), layout_(other.layout_) {}

LogDirectory::~LogDirectory() { Close(); }

void LogDirectory::Mark() const {
  if (folder_.temporary_base.empty()) return;
  auto marked = WriteMark(AT_FDCWD, folder_.temporary_base, MarkOfThisJob());
  if (!marked) LogInfo(marked.error().message);
}

std::string LogDirectory::Close() {
  const std::string base = std::exchange(folder_.temporary_base, "");
  if (base.empty()) return "";
  if (folder_.keep) {
    return LeaveFolder(base) ? "rankrun: files of the workers are in " + folder_.path + "\n" : "";
  }
  std::error_code ignored;  // a folder that stays does no harm
  fs::remove_all(base, ignored);
  return "";
}

std::string LogDirectory::AttemptFolder(int attempt) const {
  return folder_.path + "/attempt_" + std::to_string(attempt);
}

std::string LogDirectory::WorkerFolder(int attempt, int local_rank) const {
  if (layout_ == Layout::kFolderPerAttempt) return AttemptFolder(attempt);
  return AttemptFolder(attempt) + "/" + std::to_string(local_rank);
}

std::string LogDirectory::WorkerFile(int attempt, int local_rank, const std::string& name) const {
  bool shared = layout_ == Layout::kFolderPerAttempt;
  return WorkerFolder(attempt, local_rank) + "/" +
         (shared ? std::to_string(local_rank) + "." : "") + name;
}

std::string LogDirectory::ErrorFile(int attempt, int local_rank) const {
  return WorkerFile(attempt, local_rank, "error.json");
}

std::string LogDirectory::StdoutFile(int attempt, int local_rank) const {
  return WorkerFile(attempt, local_rank, "stdout.log");
}

std::string LogDirectory::StderrFile(int attempt, int local_rank) const {
  return WorkerFile(attempt, local_rank, "stderr.log");
}

std::string LogDirectory::OperationsFile(int attempt, int local_rank) const {
  return WorkerFile(attempt, local_rank, "operations.json");
}

std::string LogDirectory::TorchDumps(int attempt) const {
  return AttemptFolder(attempt) + kTorchDumps;
}

std::string LogDirectory::StacksFile(int attempt, int local_rank) const {
  return WorkerFile(attempt, local_rank, "stacks.txt");
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  auto absolute = fs::absolute(path, error);
  return error ? path : absolute.string();
}

Result<void> MakeFolders(const std::string& path) { return MakeOwnFolders(path, 0777); }

}  // namespace rankrun::agent
