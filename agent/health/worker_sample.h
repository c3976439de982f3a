#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status/activity.h"

namespace rankrun::agent {

// Kind of system call in which a thread waits, as far as it tells for what.
enum class CallKind : uint8_t {
  kNone,   // the thread runs, or the kernel does not tell
  kFile,   // read, write, open: `file` is the other end
  kSleep,  // until a time
  kLock,   // futex: a lock or a condition of the program
  kPoll,   // for several descriptors
  kPeer,   // a socket
  kChild,  // the end of a process
  kOther,
};

// Facts of a process in /proc. They describe its main thread, except for the sizes.
struct ProcessFacts {
  char state = 0;              // letter of /proc/PID/stat; 0: there is no such process
  std::string wait_channel{};  // function of the kernel in which it waits; empty: unknown
  CallKind call = CallKind::kNone;
  std::string call_name{};      // "read"; empty if `call` is kNone
  std::string file{};           // path of a file, "pipe:[7]", "socket:[8]"; empty: none, unknown
  pid_t tracer = 0;             // debugger; 0: none
  std::string tracer_name{};    // "gdb"
  uint64_t resident_bytes = 0;  // memory
  uint64_t io_bytes = 0;        // read and written since the start, sockets excluded
};

// A worker that waits for a key of the store.
struct StoreWait {
  std::string key;
  Duration lasted;
};

// State of a worker at one time. A value.
struct WorkerSample {
  std::string node{};                // name; empty in a job of one node
  std::optional<TimePoint> taken{};  // by the clock of its node; empty: at the look
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;           // 0: it has not started yet
  bool has_ended = false;  // successfully; a failure ends the attempt
  bool is_saving = false;
  Duration cpu_time{};                  // used by all its threads since its start
  std::vector<GroupActivity> groups{};  // of its status page
  bool has_all_groups = true;           // else the rest was too much for a message
  std::string awaited{};                // "a message from global rank 3 (tag 0)"; empty: nothing
  int awaited_rank = -1;                // global rank that it names; -1: none
  Duration awaited_for{};
  std::vector<uint16_t> store_ports{};  // of its connections to the store; read on demand
  std::optional<StoreWait> store_wait{};
  std::optional<ProcessFacts> process{};  // empty: not read
};

}  // namespace rankrun::agent
