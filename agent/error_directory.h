#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace rankrun::agent {

// A private folder (mode 0700, in TMPDIR) in which the workers of a job leave
// their error files, and the agent the last words of failed ones. Removed at
// the end unless kept and not empty. Thread: one at a time; the names may be used by any.
class ErrorDirectory {
 public:
  static Result<ErrorDirectory> Create();
  ErrorDirectory(ErrorDirectory&& other) noexcept;
  ErrorDirectory& operator=(ErrorDirectory&&) = delete;
  ~ErrorDirectory();

  // Where a worker writes what it died of (TORCHELASTIC_ERROR_FILE).
  std::string ErrorFile(int attempt, int local_rank) const;
  // Where the end of a worker's standard error is kept.
  std::string StderrFile(int attempt, int local_rank) const;

  void Keep() { keep_ = true; }
  const std::string& path() const { return path_; }

 private:
  explicit ErrorDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
  bool keep_ = false;
};

// What a Python worker under torch.distributed.elastic's @record wrote:
// "<exception type>: <text>". Nothing if there is no such file or it has
// another form. Source: the error file of pytorch.org/docs/stable/elastic/errors.html
std::optional<std::string> ReadErrorFile(const std::string& path);

}  // namespace rankrun::agent
