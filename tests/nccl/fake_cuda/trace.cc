#include "tests/nccl/fake_cuda/trace.h"

#include <map>
#include <set>
#include <utility>

#include "base/mutex.h"

namespace {

struct Record {
  rankrun::Mutex mutex;
  std::string lines GUARDED_BY(mutex);
  std::map<std::string, int> failures GUARDED_BY(mutex);
  std::set<std::string> stalls GUARDED_BY(mutex);
};

Record& TheRecord() {
  // Never destroyed: threads of streams use it while the process ends.
  static auto* record = new Record;
  return *record;
}

}  // namespace

void fake_trace_add(const char* line) {
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  record.lines.append(line).append("\n");
}

const char* fake_trace_take() {
  thread_local std::string taken;
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  taken = std::exchange(record.lines, "");
  return taken.c_str();
}

void fake_fail_next(const char* function, int status) {
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  record.failures[function] = status;
}

void fake_stall_next(const char* function) {
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  record.stalls.insert(function);
}

bool fake_stalls(const char* function) {
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  return record.stalls.erase(function) != 0;
}

int fake_status_of(const char* function) {
  Record& record = TheRecord();
  rankrun::MutexLock lock(record.mutex);
  auto found = record.failures.find(function);
  if (found == record.failures.end()) return 0;
  int status = found->second;
  record.failures.erase(found);
  return status;
}
