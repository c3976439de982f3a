#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/fork_count.h"
#include "base/private_api.h"
#include "base/result.h"

namespace rankrun::comm {

// The process in which the object that has this member was made. A child that this process
// forks has a copy of the object, but none of its threads, and shares its connections and its
// shared memory. So the child may neither use the object nor end it.
// Children of vfork, posix_spawn and a bare clone are not recognised.
// Thread: any.
class HomeProcess {
 public:
  // Inline, because is_here is: both use the count of their library.
  HomeProcess() : forks_(ForksSoFar()), pid_(getpid()) {}

  // Returns whether this process is the one. Costs a load.
  bool is_here() const { return forks_ == ForkCount(); }
  // Returns the error (kInvalid) of a call in a fork. `owner` is this object's process in
  // words, such as "rank 3"; `thing` is the object, such as "the group".
  RANKRUN_PRIVATE_API Error ErrorOfFork(const std::string& owner, const std::string& thing) const;

 private:
  static uint32_t ForksSoFar() {
    CountForks();
    return ForkCount();
  }

  uint32_t forks_;
  pid_t pid_;
};

// Object of which each process has its own: a forked child gets a new one, because a thread
// that the child lacks may hold a lock of its parent's. Never destroyed.
// Thread: any.
template <typename T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& Get() {
    Copy* copy = copy_.load();
    if (copy != nullptr && copy->home.is_here()) return copy->value;
    Copy* made = new Copy;
    made->inherited = copy;
    if (copy_.compare_exchange_strong(copy, made)) return made->value;
    delete made;  // another thread was first
    return copy->value;
  }
  // Returns the object of the process that this one was forked from; null: none.
  const T* inherited() {
    Get();
    Copy* from = copy_.load()->inherited;
    return from == nullptr ? nullptr : &from->value;
  }

 private:
  struct Copy {
    HomeProcess home;
    T value;
    Copy* inherited = nullptr;
  };

  std::atomic<Copy*> copy_ = nullptr;
};

}  // namespace rankrun::comm
