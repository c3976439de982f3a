#include "agent/report/evidence.h"

#include <fcntl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/report/error_file.h"
#include "agent/report/kill_evidence.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_timer.h"
#include "base/uv/uv_work.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kTimeout{1};

// One worker's files, copied for the pool's thread.
struct Files {
  std::string error_file;
  std::string stderr_file;  // empty: nothing to save
  std::string stderr_tail;
};

// Evidence that the pool's thread has found so far.
struct Found {
  std::vector<std::optional<std::string>> exceptions;
  std::vector<bool> saved;
  KillEvidence kills;
};

struct Collection {
  AttemptRecord record;
  std::vector<Files> files;
  Mutex mutex;
  Found found GUARDED_BY(mutex);
  std::function<void(AttemptRecord)> done;  // empty once called
  std::unique_ptr<Timer> timer;

  void Finish() {
    if (!done) return;
    AddToRecord();
    std::exchange(done, {})(std::move(record));
  }

  void AddToRecord() {
    MutexLock lock(mutex);
    std::vector<WorkerRecord>& workers = record.workers;
    for (size_t i = 0; i < files.size(); ++i) {
      workers[i].exception = std::move(found.exceptions[i]);
      if (found.saved[i]) workers[i].stderr_file = files[i].stderr_file;
    }
    for (WorkerRecord& worker : workers) worker.kill_note = ExplainKill(worker, found.kills);
  }
};

// Saves the tail of standard error. Returns whether its file is complete.
bool Save(const Files& files) {
  if (files.stderr_file.empty()) return false;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  Fd file(open(files.stderr_file.c_str(), kFlags, 0600));
  if (!file) return false;
  if (TryWriteAll(file.get(), files.stderr_tail)) return true;
  unlink(files.stderr_file.c_str());  // an incomplete file would be misleading
  return false;
}

// Returns -n for signal n, as torchrun does.
int ErrorCodeOf(const WorkerRecord& worker) {
  if (!worker.exit) return ExitCodeOf(worker);
  return worker.exit->signaled ? -worker.exit->value : worker.exit->value;
}

std::vector<Files> NameFiles(const LogDirectory& directory, const AttemptRecord& record) {
  std::vector<Files> files;
  for (const WorkerRecord& worker : record.workers) {
    bool unsaved = worker.stderr_file.empty() && !worker.stderr_tail.empty();
    std::string file = directory.StderrFile(record.attempt, worker.local_rank);
    files.push_back({.error_file = directory.ErrorFile(record.attempt, worker.local_rank),
                     .stderr_file = unsaved ? file : "",
                     .stderr_tail = worker.stderr_tail});
  }
  return files;
}

// Returns a function that copies the cause's error file for an outer launcher;
// empty if there is no such launcher or no file.
std::function<void()> CopyForParent(const LogDirectory* directory, const AttemptRecord& record) {
  if (directory == nullptr || record.parent_error_file.empty()) return {};
  const WorkerRecord& cause = record.workers[record.cause];
  return [from = directory->ErrorFile(record.attempt, cause.local_rank),
          to = record.parent_error_file, code = ErrorCodeOf(cause)] {
    if (auto copied = CopyErrorFile(from, to, code); !copied) LogWarn(copied.error().message);
  };
}

void ReadAndSave(Collection& collection, size_t worker) {
  auto exception = ReadErrorFile(collection.files[worker].error_file);
  {
    MutexLock lock(collection.mutex);
    collection.found.exceptions[worker] = std::move(exception);
  }
  bool saved = Save(collection.files[worker]);
  MutexLock lock(collection.mutex);
  collection.found.saved[worker] = saved;
}

// Runs in the pool. Reads the cause's files first, because any file may hang.
// `copy` may be empty.
void Collect(Collection& collection, size_t cause, const std::function<void()>& copy,
             const std::string& root) {
  if (!collection.files.empty()) ReadAndSave(collection, cause);
  if (copy) copy();
  auto after = ReadMemoryEvents(root);
  auto shared_memory = ReadSpace(root + "/dev/shm");
  {
    MutexLock lock(collection.mutex);
    collection.found.kills.after = after;
    collection.found.kills.shared_memory = shared_memory;
  }
  for (size_t i = 0; i < collection.files.size(); ++i) {
    if (i != cause) ReadAndSave(collection, i);
  }
}

}  // namespace

void Evidence::Complete(const LogDirectory* directory, AttemptRecord record,
                        std::function<void(AttemptRecord)> done) {
  if (!under_way_.expired()) {
    loop_.Post([done, record] { done(record); });
    return;
  }
  // Shared by the pool's job and the timer.
  auto collection = std::make_shared<Collection>();
  under_way_ = collection;
  if (directory != nullptr) collection->files = NameFiles(*directory, record);
  {
    MutexLock lock(collection->mutex);
    collection->found.exceptions.resize(collection->files.size());
    collection->found.saved.resize(collection->files.size());
    collection->found.kills.before = record.memory_before;
  }
  std::function<void()> copy = CopyForParent(directory, record);
  size_t cause = record.cause;
  collection->record = std::move(record);
  collection->done = std::move(done);
  collection->timer = std::make_unique<Timer>(loop_, [raw = collection.get()] { raw->Finish(); });
  collection->timer->Start(kTimeout);
  RunInPool(
      loop_, [collection, cause, copy, root = root_] { Collect(*collection, cause, copy, root); },
      [collection] { collection->Finish(); });
}

}  // namespace rankrun::agent
