#include "agent/evidence.h"

#include <fcntl.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/error_file.h"
#include "agent/kill_evidence.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/uv_loop.h"
#include "base/uv_timer.h"
#include "base/uv_work.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kPatience{1};

// One worker's files, with copies of all that the pool's thread needs.
struct Files {
  std::string error_file;
  std::string stderr_file;  // empty: nothing to save
  std::string stderr_tail;
};

// What the pool's thread has found so far.
struct Found {
  std::vector<std::optional<std::string>> exceptions;
  std::vector<bool> saved;
  KillEvidence kills;
};

struct Collection {
  AttemptRecord record;
  std::vector<Files> files;
  std::mutex mutex;
  Found found;                              // guarded by mutex
  std::function<void(AttemptRecord)> done;  // empty once called
  std::unique_ptr<Timer> patience;

  void Finish() {
    if (!done) return;
    AddToRecord();
    std::exchange(done, {})(std::move(record));
  }

  void AddToRecord() {
    std::lock_guard lock(mutex);
    std::vector<WorkerRecord>& workers = record.workers;
    for (size_t i = 0; i < files.size(); ++i) {
      workers[i].exception = std::move(found.exceptions[i]);
      if (found.saved[i]) workers[i].stderr_file = files[i].stderr_file;
    }
    for (WorkerRecord& worker : workers) worker.kill_note = ExplainKill(worker, found.kills);
  }
};

// Whether the end of a standard error is in its file now.
bool Save(const Files& files) {
  if (files.stderr_file.empty()) return false;
  Fd file(open(files.stderr_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return false;
  if (TryWriteAll(file.get(), files.stderr_tail)) return true;
  unlink(files.stderr_file.c_str());  // a part would look like all
  return false;
}

// -n for signal n, as torchrun has it.
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

// Empty: there is no launcher around us, or nothing for it.
std::function<void()> CopyForParent(const LogDirectory* directory, const AttemptRecord& record) {
  if (directory == nullptr || record.parent_error_file.empty()) return {};
  const WorkerRecord& cause = record.workers[record.cause];
  return [from = directory->ErrorFile(record.attempt, cause.local_rank),
          to = record.parent_error_file, code = ErrorCodeOf(cause)] {
    if (auto copied = CopyErrorFile(from, to, code); !copied) LogWarn(copied.error().message);
  };
}

// In the pool. The cause's files come first, since any may hang. `copy` is
// empty or makes the copy of the cause's.
void Collect(Collection& collection, size_t cause, const std::function<void()>& copy,
             const std::string& root) {
  auto read_and_save = [&](size_t i) {
    auto exception = ReadErrorFile(collection.files[i].error_file);
    {
      std::lock_guard lock(collection.mutex);
      collection.found.exceptions[i] = std::move(exception);
    }
    bool saved = Save(collection.files[i]);
    std::lock_guard lock(collection.mutex);
    collection.found.saved[i] = saved;
  };
  if (!collection.files.empty()) read_and_save(cause);
  if (copy) copy();
  auto after = ReadMemoryEvents(root);
  auto shared_memory = ReadSpace(root + "/dev/shm");
  {
    std::lock_guard lock(collection.mutex);
    collection.found.kills.after = after;
    collection.found.kills.shared_memory = shared_memory;
  }
  for (size_t i = 0; i < collection.files.size(); ++i) {
    if (i != cause) read_and_save(i);
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
  collection->found.exceptions.resize(collection->files.size());
  collection->found.saved.resize(collection->files.size());
  collection->found.kills.before = record.memory_before;
  std::function<void()> copy = CopyForParent(directory, record);
  size_t cause = record.cause;
  collection->record = std::move(record);
  collection->done = std::move(done);
  collection->patience =
      std::make_unique<Timer>(loop_, [raw = collection.get()] { raw->Finish(); });
  collection->patience->Start(kPatience);
  RunInPool(
      loop_, [collection, cause, copy, root = root_] { Collect(*collection, cause, copy, root); },
      [collection] { collection->Finish(); });
}

}  // namespace rankrun::agent
