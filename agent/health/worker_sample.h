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
  std::string call_name{};    // "read"; empty if `call` is kNone
  std::string file{};         // path of a file, "pipe:[7]", "socket:[8]"; empty: none, unknown
  std::string file_detail{};  // "a FIFO", "from pid 12 (cat)", "to 10.0.0.1:29500"; or empty
  // For which the main thread waits. No value: it is not known. Not sent to other nodes.
  std::optional<std::vector<int>> descriptors{};
  pid_t tracer = 0;             // debugger; 0: none
  std::string tracer_name{};    // "gdb"
  uint64_t resident_bytes = 0;  // memory
  uint64_t io_bytes = 0;        // read and written since the start, sockets excluded
};

// A TCP connection of a worker, but not one to the store.
struct PeerConnection {
  uint64_t id = 0;            // the same at both ends
  Duration since_received{};  // the time since its latest data
  bool operator==(const PeerConnection&) const = default;
};
constexpr size_t kMaxConnections = 32;  // of a worker: those with the latest data

// Work of a worker's process and of those below it, as counters since their start. It is read only
// when a verdict may be near.
struct WorkFacts {
  Duration cpu_time{};          // of all threads
  Duration main_cpu_time{};     // of the main threads
  uint64_t io_bytes = 0;        // of files and pipes, read and written
  uint64_t written_bytes = 0;   // to files and pipes, by the main threads
  uint64_t received_bytes = 0;  // by all TCP connections but those to the store
  uint64_t wakes = 0;           // of the worker's main thread, after it has waited
  bool knows_connections = false;
  std::vector<PeerConnection> connections{};
  uint64_t awaited_connection = 0;  // whose data the worker's main thread waits for; 0: none
  bool operator==(const WorkFacts&) const = default;
};

// A worker that waits for a key of the store.
struct StoreWait {
  std::string key;
  Duration lasted;
};

// A connection for whose data the main thread of a worker waits, to another worker of its node.
struct PeerWait {
  int global_rank = 0;     // of the other end
  std::string address{};   // of the other end
  bool is_server = false;  // which has accepted the connection
  bool is_guess = false;   // the only such server, while the main thread polls
};

// State of a worker at one time. A value.
struct WorkerSample {
  std::string node{};                // name; empty in a job of one node
  std::optional<TimePoint> taken{};  // by the clock of its node; empty: at the look
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;           // 0: it has not started yet
  bool has_ended = false;  // successfully; a failure ends the attempt
  Duration ended_for{};    // since its end, if has_ended
  bool is_saving = false;
  bool is_at_prompt = false;            // waits for input from the terminal
  Duration cpu_time{};                  // used by all its threads since its start
  std::vector<GroupActivity> groups{};  // of its status page
  bool has_all_groups = true;           // else the rest was too much for a message
  std::string awaited{};                // "a message from global rank 3 (tag 0)"; empty: nothing
  int awaited_rank = -1;                // global rank that it names; -1: none
  Duration awaited_for{};
  bool uses_library = false;   // it has RPC or a TcpStore of librankrun
  uint64_t store_changes = 0;  // at the store that its node hosts; 0: it hosts none
  // The ports of its connections to the store, if its main thread may wait for them; read on
  // demand.
  std::vector<uint16_t> store_ports{};
  std::optional<StoreWait> store_wait{};
  std::optional<PeerWait> peer_wait{};    // read on demand, as `dials`
  std::vector<std::string> dials{};       // addresses that have not answered yet
  std::optional<ProcessFacts> process{};  // empty: not read
  std::optional<WorkFacts> work{};        // likewise
};

}  // namespace rankrun::agent
