#include "comm/shm/exit_note.h"

#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/mutex.h"

namespace rankrun::comm::shm {
namespace {

// Codes of all notes, each with its process: a fork has a copy.
class Notes {
 public:
  static Notes& Instance() {
    static auto* notes = new Notes;
    return *notes;
  }

  void Add(std::atomic<int32_t>& code) {
    MutexLock lock(mutex_);
    codes_[&code] = getpid();
  }
  void Remove(std::atomic<int32_t>& code) {
    MutexLock lock(mutex_);
    codes_.erase(&code);
  }

 private:
  Notes() {
    on_exit([](int status, void* self) { static_cast<Notes*>(self)->Write(status); }, this);
  }

  // Does nothing if another thread has the mutex, or had it when this process was forked.
  void Write(int status) {
    if (!mutex_.TryLock()) return;
    MutexLock lock(mutex_, std::adopt_lock);
    for (const auto& [code, pid] : codes_) {
      if (pid == getpid()) code->store(1 + (status & 0xff), std::memory_order_release);
    }
  }

  Mutex mutex_;
  std::map<std::atomic<int32_t>*, pid_t> codes_ GUARDED_BY(mutex_);
};

}  // namespace

ExitNote::ExitNote(std::atomic<int32_t>& code) : code_(code) { Notes::Instance().Add(code); }

ExitNote::~ExitNote() { Notes::Instance().Remove(code_); }

}  // namespace rankrun::comm::shm
