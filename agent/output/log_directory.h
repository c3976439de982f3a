#pragma once

#include <string>
#include <utility>

#include "agent/job/job_record.h"
#include "agent/job/output_spec.h"
#include "base/result.h"

namespace rankrun::agent {

// Folder of a job's log and error files, laid out as torchrun does: <base>/<run
// id>_<8 random>/attempt_<n>/<local rank>/. The run's folder has mode 0700. A
// base that the user named is created if it is missing, and stays. A base of
// our own, in a folder for temporary files, is removed at the end with its
// content; after Keep(), only what LeaveFolder removes (old_folders.h).
// Thread: one at a time; the path functions: any.
// Source: section "logs" of pytorch.org/docs/stable/elastic/run.html
class LogDirectory {
 public:
  // One folder per worker may take too long to create at the start. Without log
  // files, the error files therefore lie side by side: <run>/attempt_<n>/<local
  // rank>.error.json.
  enum class Layout { kFolderPerWorker, kFolderPerAttempt };

  // Returns the layout that a job's output needs. Pure.
  static Layout LayoutFor(const OutputSpec& output);

  // Errors: kInvalid, "--log-dir <base>: <cause>".
  static Result<LogDirectory> CreateNamed(const std::string& base, const std::string& run_id);
  // Creates it in $TMPDIR, or else in /tmp. Errors: kNotFound, kSystem.
  static Result<LogDirectory> CreateTemporary(const std::string& run_id,
                                              Layout layout = Layout::kFolderPerWorker);
  // Takes over a folder of another process, which has died.
  explicit LogDirectory(JobFolder folder, Layout layout = Layout::kFolderPerWorker)
      : folder_(std::move(folder)), layout_(layout) {}

  LogDirectory(LogDirectory&& other) noexcept;
  LogDirectory& operator=(LogDirectory&&) = delete;
  ~LogDirectory();

  // Folder of the run.
  const std::string& path() const { return folder_.path; }
  std::string AttemptFolder(int attempt) const;
  // Folder of a worker's files; to be created before the worker starts.
  std::string WorkerFolder(int attempt, int local_rank) const;
  // File for the cause of a worker's failure, written by the worker
  // (TORCHELASTIC_ERROR_FILE).
  std::string ErrorFile(int attempt, int local_rank) const;
  std::string StdoutFile(int attempt, int local_rank) const;
  std::string StderrFile(int attempt, int local_rank) const;
  // File for the last operations of a worker in a failed attempt.
  std::string OperationsFile(int attempt, int local_rank) const;
  // Beginning of the files for the last calls of PyTorch, in the folder of the attempt; a global
  // rank follows.
  static constexpr const char* kTorchDumps = "/torch_calls_of_rank_";
  std::string TorchDumps(int attempt) const;
  // File for the stacks of a worker that rankrun has killed.
  std::string StacksFile(int attempt, int local_rank) const;

  void Keep() { folder_.keep = true; }
  // Marks a temporary base as that of a job of which this process is the agent (folder_mark.h).
  void Mark() const;
  // Removes a temporary base, or after Keep() its empty folders. The destructor calls it, too.
  // Returns a line for the user if files stay there; otherwise an empty text.
  std::string Close();

  // Returns the data with which another process can take over or remove the
  // folder.
  const JobFolder& ForRecord() const { return folder_; }

 private:
  std::string WorkerFile(int attempt, int local_rank, const std::string& name) const;

  JobFolder folder_;
  Layout layout_;
};

// Makes a path absolute because workers may change their working directory.
std::string Absolute(const std::string& path);

// Creates a folder and its missing parents, with modes from the umask. Blocks
// as the file system does. Errors: those of MakeOwnFolders.
Result<void> MakeFolders(const std::string& path);

}  // namespace rankrun::agent
