#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/health/connections.h"
#include "agent/health/waiting_call.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace rankrun::agent {

// The file, pipe, socket or terminal that a system call is about.
struct AwaitedFile {
  std::string name{};    // "/data/x", "pipe:[7]", "socket:[8]"; empty: none, unknown
  std::string detail{};  // "a FIFO", "from pid 12 (cat)", "on the NFS server nas:/x"; or empty
};

// Finds the files for which processes wait, and their other ends. Follows no path and stats no
// file, because a server that does not answer would block that. Links, fdinfo, the table of
// mounts and the function of the kernel in which the process waits show the kind.
// Thread: any, but not the loop's.
class AwaitedFiles {
 public:
  // `wait_channel`: function of the kernel in which the main thread of `pid` waits; empty: unknown.
  AwaitedFile Find(pid_t pid, const WaitingCall& call, const std::string& wait_channel);

 private:
  struct Descriptor {
    pid_t pid = 0;
    int number = 0;
  };
  // Descriptors by the names of their files; sockets are left out.
  struct OpenFiles {
    std::multimap<std::string, Descriptor> by_name{};
    bool is_complete = true;  // the descriptors of all processes could be read
  };
  template <typename T>
  struct Kept {
    std::optional<T> value{};
    TimePoint read{};
  };

  static OpenFiles ReadOpenFiles();
  static std::set<pid_t> EndsIn(const OpenFiles& files, pid_t pid, const std::string& name,
                                int own_mode);
  std::string OtherEnds(pid_t pid, const std::string& name, bool reads);
  std::string Connection(const std::string& socket);
  std::string Lock(pid_t pid);

  Mutex mutex_;
  Kept<OpenFiles> open_files_ GUARDED_BY(mutex_);
  Kept<ConnectionsByInode> connections_ GUARDED_BY(mutex_);
  Kept<std::string> locks_ GUARDED_BY(mutex_);
};

// Returns "pid 12 (cat)"; "pid 12" for a process that has ended. Thread: any.
std::string ProcessInWords(pid_t pid);

}  // namespace rankrun::agent
