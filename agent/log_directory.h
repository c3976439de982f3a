#pragma once

#include <string>

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
  // Errors: kInvalid, "--log-dir <base>: <cause>".
  static Result<LogDirectory> CreateNamed(const std::string& base, const std::string& run_id);
  // In $TMPDIR, else in /tmp. Errors: kNotFound, kSystem.
  static Result<LogDirectory> CreateTemporary(const std::string& run_id);

  LogDirectory(LogDirectory&& other) noexcept;
  LogDirectory& operator=(LogDirectory&&) = delete;
  ~LogDirectory();

  // Of the run.
  const std::string& path() const { return path_; }
  std::string AttemptFolder(int attempt) const;
  std::string WorkerFolder(int attempt, int local_rank) const;
  // Where a worker writes what it died of (TORCHELASTIC_ERROR_FILE).
  std::string ErrorFile(int attempt, int local_rank) const;
  std::string StdoutFile(int attempt, int local_rank) const;
  std::string StderrFile(int attempt, int local_rank) const;

  void Keep() { keep_ = true; }

 private:
  LogDirectory(std::string temporary_base, std::string path)
      : temporary_base_(std::move(temporary_base)), path_(std::move(path)) {}

  std::string temporary_base_;  // removed at the end; empty: nothing is
  std::string path_;
  bool keep_ = false;
};

// Makes a folder and those above it, as the umask says. Blocks as the file
// system does. Errors: kSystem and its like.
Result<void> MakeFolders(const std::string& path);

}  // namespace rankrun::agent
