#pragma once

#include <string>
#include <utility>

#include "agent/job_record.h"
#include "agent/output_spec.h"
#include "base/result.h"

namespace rankrun::agent {

// The folder of a job's log and error files, laid out as torchrun does:
// <base>/<run id>_<8 random>/attempt_<n>/<local rank>/. The run's folder has
// mode 0700. A base that the user named is made and kept. One of our own, in a
// folder for temporary files, is removed at the end with all that is in it;
// if it is to be kept, only what is empty in it.
// Thread: one at a time; the names: any.
// Source: section "logs" of pytorch.org/docs/stable/elastic/run.html
class LogDirectory {
 public:
  // A folder for each worker costs a file system more than a start may take, so
  // one that is made for error files only has them side by side:
  // <run>/attempt_<n>/<local rank>.error.json.
  enum class Layout { kFolderPerWorker, kFolderPerAttempt };

  // What a job's output needs. Pure.
  static Layout LayoutFor(const OutputSpec& output);

  // Errors: kInvalid, "--log-dir <base>: <cause>".
  static Result<LogDirectory> CreateNamed(const std::string& base, const std::string& run_id);
  // In $TMPDIR, else in /tmp. Errors: kNotFound, kSystem.
  static Result<LogDirectory> CreateTemporary(const std::string& run_id,
                                              Layout layout = Layout::kFolderPerWorker);
  // One that another process made, which has died.
  LogDirectory(JobFolder folder, Layout layout) : folder_(std::move(folder)), layout_(layout) {}

  LogDirectory(LogDirectory&& other) noexcept;
  LogDirectory& operator=(LogDirectory&&) = delete;
  ~LogDirectory();

  // Of the run.
  const std::string& path() const { return folder_.path; }
  std::string AttemptFolder(int attempt) const;
  // Where the files of a worker are; to be made before its start.
  std::string WorkerFolder(int attempt, int local_rank) const;
  // Where a worker writes what it died of (TORCHELASTIC_ERROR_FILE).
  std::string ErrorFile(int attempt, int local_rank) const;
  std::string StdoutFile(int attempt, int local_rank) const;
  std::string StderrFile(int attempt, int local_rank) const;

  void Keep() { folder_.keep = true; }

  // What another process needs to go on with it, or to remove it.
  const JobFolder& ForRecord() const { return folder_; }

 private:
  std::string WorkerFile(int attempt, int local_rank, const std::string& name) const;

  JobFolder folder_;
  Layout layout_;
};

// Makes a folder and those above it, as the umask says. Blocks as the file
// system does. Errors: kSystem and its like.
Result<void> MakeFolders(const std::string& path);

}  // namespace rankrun::agent
