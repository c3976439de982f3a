#include "agent/report/evidence.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/report/error_file.h"
#include "agent/report/kill_evidence.h"
#include "agent/report/last_operations.h"
#include "agent/report/regular_file.h"
#include "agent/report/torch_calls.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/own_file.h"
#include "base/status/status_page.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_timer.h"
#include "base/uv/uv_work.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kTimeout{1};

// The part of a record that the pool's thread needs.
struct Order {
  int attempt;
  std::vector<size_t> shown;  // workers whose last operations the report shows; the cause first
};

// One worker's files, copied for the pool's thread.
struct Files {
  std::string error_file;
  std::string stderr_file;  // empty: nothing to save
  std::string stderr_tail;
  std::string stacks_file;  // empty: nothing to save
  std::string stacks;
};

// The memory with one worker's operations, for the pool's thread.
struct Recorder {
  std::shared_ptr<const StatusPage> page;  // null: none
  std::string file;                        // for all operations; empty: no folder
  WorkerRecord worker;                     // without its texts
};

// Evidence that the pool's thread has found so far.
struct Found {
  std::vector<std::optional<std::string>> exceptions;
  std::vector<bool> saved;
  std::vector<bool> saved_stacks;
  std::vector<std::vector<LastOperation>> last_operations;
  std::vector<std::string> operations_files;
  std::vector<TorchDump> dumps;
  KillEvidence kills;
};

// The operations that librankrun has noted are more exact.
void AddDump(WorkerRecord& worker, TorchDump dump) {
  worker.calls = std::move(dump.calls);
  if (worker.last_operations.empty()) worker.last_operations = std::move(dump.last_operations);
  if (worker.activity.what.empty()) worker.activity = std::move(dump.activity);
}

struct Collection {
  AttemptRecord record;
  std::chrono::system_clock::time_point began;  // the attempt
  std::vector<std::vector<std::string>> dump_files;
  std::vector<Files> files;
  std::vector<Recorder> recorders;
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
      if (found.saved_stacks[i]) workers[i].stacks.file = files[i].stacks_file;
    }
    for (size_t i = 0; i < recorders.size(); ++i) {
      workers[i].last_operations = std::move(found.last_operations[i]);
      workers[i].operations_file = std::move(found.operations_files[i]);
    }
    for (size_t i = 0; i < dump_files.size(); ++i) AddDump(workers[i], std::move(found.dumps[i]));
    for (WorkerRecord& worker : workers) worker.kill_note = ExplainKill(worker, found.kills);
  }
};

// Returns whether the file is complete. An empty path is none.
bool Save(const std::string& path, const std::string& content) {
  if (path.empty()) return false;
  auto file = OpenOwnFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file) return false;
  if (TryWriteAll(file->get(), content)) return true;
  unlink(path.c_str());  // an incomplete file would be misleading
  return false;
}

// Returns -n for signal n, as torchrun does.
int ErrorCodeOf(const WorkerRecord& worker) {
  if (!worker.exit) return ExitCodeOf(worker);
  return worker.exit->signaled ? -worker.exit->value : worker.exit->value;
}

std::vector<Files> NameFiles(const LogDirectory& directory, AttemptRecord& record) {
  std::vector<Files> files;
  for (WorkerRecord& worker : record.workers) {
    bool unsaved = worker.stderr_file.empty() && !worker.stderr_tail.empty();
    std::string file = directory.StderrFile(record.attempt, worker.local_rank);
    bool has_stacks = !worker.stacks.text.empty();
    std::string stacks = directory.StacksFile(record.attempt, worker.local_rank);
    files.push_back({.error_file = directory.ErrorFile(record.attempt, worker.local_rank),
                     .stderr_file = unsaved ? file : "",
                     .stderr_tail = worker.stderr_tail,
                     .stacks_file = has_stacks ? stacks : "",
                     .stacks = std::exchange(worker.stacks.text, "")});
  }
  return files;
}

std::vector<Recorder> RecordersOf(const LogDirectory* directory, AttemptRecord& record) {
  std::vector<Recorder> recorders;
  for (WorkerRecord& worker : record.workers) {
    Recorder recorder{.page = std::exchange(worker.status_page, nullptr), .file = {}, .worker = {}};
    recorder.worker.global_rank = worker.global_rank;
    recorder.worker.local_rank = worker.local_rank;
    recorder.worker.pid = worker.pid;
    recorder.worker.noted_ticks = worker.noted_ticks;
    if (directory != nullptr) {
      recorder.file = directory->OperationsFile(record.attempt, worker.local_rank);
    }
    recorders.push_back(std::move(recorder));
  }
  return recorders;
}

// Returns the cause and, if there is one, another worker that was in an operation.
std::vector<size_t> WorkersToShow(const AttemptRecord& record) {
  std::vector<size_t> shown{record.cause};
  for (size_t i = 0; i < record.workers.size(); ++i) {
    if (i == record.cause || record.workers[i].activity.what.empty()) continue;
    shown.push_back(i);
    break;
  }
  return shown;
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
  const Files& files = collection.files[worker];
  bool saved = Save(files.stderr_file, files.stderr_tail);
  bool saved_stacks = Save(files.stacks_file, files.stacks);
  MutexLock lock(collection.mutex);
  collection.found.saved[worker] = saved;
  collection.found.saved_stacks[worker] = saved_stacks;
}

void NoteLastOperations(Collection& collection, size_t worker) {
  const Recorder& recorder = collection.recorders[worker];
  if (recorder.page == nullptr) return;
  auto last = LastOperationsOf(ReadOperations(*recorder.page, recorder.worker.noted_ticks));
  MutexLock lock(collection.mutex);
  collection.found.last_operations[worker] = std::move(last);
}

void SaveOperations(Collection& collection, size_t worker, int attempt) {
  const Recorder& recorder = collection.recorders[worker];
  if (recorder.page == nullptr || recorder.file.empty()) return;
  WorkerOperations all = ReadOperations(*recorder.page, recorder.worker.noted_ticks);
  if (all.histories.empty()) return;
  if (!Save(recorder.file, FormatOperations(all, recorder.worker, attempt))) return;
  MutexLock lock(collection.mutex);
  collection.found.operations_files[worker] = recorder.file;
}

void ReadDump(Collection& collection, size_t worker) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  for (const std::string& file : collection.dump_files[worker]) {
    auto content = ReadRegularFile(file, kMaxBytes, collection.began);
    if (!content) continue;
    TorchDump dump = ReadTorchDump(*content, std::chrono::system_clock::now());
    MutexLock lock(collection.mutex);
    collection.found.dumps[worker] = std::move(dump);
    return;
  }
}

// Runs in the pool. Reads memory first, then the cause's files, because any file may
// hang. `copy` may be empty.
void Collect(Collection& collection, const Order& order, const std::function<void()>& copy,
             const std::string& root) {
  for (size_t worker : order.shown) NoteLastOperations(collection, worker);
  const size_t cause = order.shown[0];
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
  for (size_t i = 0; i < collection.dump_files.size(); ++i) ReadDump(collection, i);
  for (size_t worker : order.shown) SaveOperations(collection, worker, order.attempt);
  for (size_t i = 0; i < collection.recorders.size(); ++i) {
    const bool is_saved = std::ranges::find(order.shown, i) != order.shown.end();
    if (!is_saved) SaveOperations(collection, i, order.attempt);
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
  collection->recorders = RecordersOf(directory, record);
  for (WorkerRecord& worker : record.workers) {
    collection->dump_files.push_back(std::exchange(worker.dump_files, {}));
  }
  const auto lasted =
      std::chrono::duration_cast<std::chrono::system_clock::duration>(record.lasted);
  collection->began = std::chrono::system_clock::now() - lasted;
  {
    MutexLock lock(collection->mutex);
    collection->found.exceptions.resize(collection->files.size());
    collection->found.saved.resize(collection->files.size());
    collection->found.saved_stacks.resize(collection->files.size());
    collection->found.last_operations.resize(collection->recorders.size());
    collection->found.operations_files.resize(collection->recorders.size());
    collection->found.dumps.resize(collection->dump_files.size());
    collection->found.kills.before = record.memory_before;
  }
  std::function<void()> copy = CopyForParent(directory, record);
  Order order{.attempt = record.attempt, .shown = WorkersToShow(record)};
  collection->record = std::move(record);
  collection->done = std::move(done);
  collection->timer = std::make_unique<Timer>(loop_, [raw = collection.get()] { raw->Finish(); });
  collection->timer->Start(kTimeout);
  RunInPool(
      loop_, [collection, order, copy, root = root_] { Collect(*collection, order, copy, root); },
      [collection] { collection->Finish(); });
}

}  // namespace rankrun::agent
