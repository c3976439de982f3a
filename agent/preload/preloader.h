#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/preload/preload_link.h"
#include "base/mutex.h"
#include "base/process/spawn.h"

namespace rankrun::agent {

// The preloader of this node: a process of Python that imports modules once and then forks the
// workers, which need not import them again (preload.py). It stays over the attempts. A worker that
// it forks becomes a child of this process, like one that is executed.
// Thread: any; BeginAttempt and CancelStarts: loop.  Lifetime: until no start uses it. The process
// dies when the thread of its start ends.
class Preloader {
 public:
  struct Options {
    std::string modules;                   // "torch,torch._dynamo"
    std::vector<std::string> environment;  // of the user, "NAME=value"
    size_t python_options;                 // of the workers' command line: see CountPythonOptions
    int null_fd;                           // /dev/null: its standard input
  };

  // Errors: those of SystemError.
  static Result<std::unique_ptr<Preloader>> Create(Options options);

  Preloader(const Preloader&) = delete;
  Preloader& operator=(const Preloader&) = delete;
  ~Preloader() { End(); }

  // Forks a worker, at first after the imports. Blocks. Returns nothing where no fork is possible
  // or safe, after a warning with the reason; the worker is to be executed then. Errors: those of
  // SpawnProcess; kCancelled after CancelStarts.
  std::optional<Result<SpawnedProcess>> Start(const SpawnSpec& spec) EXCLUDES(mutex_);

  // An attempt begins: its first start imports again if files of the modules have changed.
  void BeginAttempt();

  // Ends the starts that wait for the imports, until the next attempt begins.
  void CancelStarts();

  // Ends the process, and starts none any more.
  void End();

  // Returns the process, which is no leftover of a worker; empty if there is none.
  std::set<pid_t> Processes() const;

 private:
  Preloader(Options options, Fd interrupt)
      : options_(std::move(options)), interrupt_(std::move(interrupt)) {}

  Result<void> Ready(const SpawnSpec& spec) REQUIRES(mutex_);
  Result<void> StartProcess(const SpawnSpec& spec) REQUIRES(mutex_);
  Result<void> AwaitImports() REQUIRES(mutex_);
  Result<void> CheckFiles() REQUIRES(mutex_);
  Result<SpawnedProcess> Fork(const SpawnSpec& spec) REQUIRES(mutex_);
  void EndProcess() REQUIRES(mutex_);
  void KillProcess() EXCLUDES(process_mutex_);

  const Options options_;
  const Fd interrupt_;  // readable after CancelStarts
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<bool> is_to_check_ = false;
  std::atomic<bool> has_ended_ = false;  // for ever
  Mutex mutex_;                          // held while a start waits
  PreloadLink link_ GUARDED_BY(mutex_);
  bool has_imported_ GUARDED_BY(mutex_) = false;
  bool is_given_up_ GUARDED_BY(mutex_) = false;  // workers are executed, to the end of the job
  mutable Mutex process_mutex_;
  std::optional<SpawnedProcess> process_ GUARDED_BY(process_mutex_);
};

}  // namespace rankrun::agent
