#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/private_api.h"
#include "base/result.h"
#include "base/status/activity_table.h"
#include "base/status/flight_table.h"
#include "base/status/ticks.h"

namespace rankrun {

// Page through which a worker shows its activity to its agent, and the agent
// reports a peer's death to the worker: a memory file that outlives the worker.
// The header identifies the owner of the page; the table of activities follows, and
// behind the page the flight recorder, kFlightBytes, unless RLIMIT_FSIZE is too small.
constexpr uint64_t kStatusPageMagic = 0x31455441'54535252;  // "RRSTATE1", little-endian
constexpr uint32_t kStatusPageVersion = 3;
constexpr size_t kStatusPageBytes = 64 * 1024;
constexpr size_t kPeerDeathBytes = 255;

struct StatusPageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t size_bytes;
  uint64_t inode;          // of the memory file; a copy has another one
  int32_t agent_pid;       // as in RANKRUN_STATUS_PATH
  uint32_t saving;         // by the worker: 1 while it saves and must not be interrupted
  uint64_t created_ticks;  // creation of the page
  int64_t created_time;    // the same on CLOCK_MONOTONIC, in nanoseconds
  // The agent's half, in a cache line that the worker never writes. The agent
  // writes the text once and the sequence after it. A writer that dies in
  // between has published nothing.
  alignas(64) uint32_t death_sequence;   // futex; 0: no death was published
  char death_text[kPeerDeathBytes + 1];  // ends with a zero
  uint32_t debuggers_ended;  // number of the last stop at a breakpoint whose debugger has ended
};

// At the start of a memory page, which takes no memory until it is written.
constexpr size_t kActivityTableAt = 4096;
static_assert(sizeof(StatusPageHeader) <= kActivityTableAt);
static_assert(kActivityTableAt + sizeof(ActivityTable) <= kStatusPageBytes);

// A status page mapped into this process; the destructor unmaps it.
// Thread: one at a time. The layout allows concurrent access by another
// process.
class StatusPage {
 public:
  // Creates a page, sealed against resizing. For the agent.
  static Result<StatusPage> Create();

  // Maps the page named by RANKRUN_STATUS_FD, or else by RANKRUN_STATUS_PATH.
  // For the worker. Errors: kNotFound if neither is set, kInvalid if they do
  // not name a page of the agent in RANKRUN_STATUS_PATH (the program may have
  // opened another file at that descriptor).
  static Result<StatusPage> FromEnvironment();

  // Returns the page of this process, looked up once and never unmapped; null
  // if there is none.
  RANKRUN_PRIVATE_API static const StatusPage* OfThisProcess();

  StatusPage(StatusPage&& other) noexcept;
  StatusPage& operator=(StatusPage&& other) noexcept;
  ~StatusPage();

  const StatusPageHeader& header() const { return *header_; }
  // For base/status/activity.h.
  ActivityTable& activities() const;
  // The flight recorder, kFlightGroups groups; mapped by the first call. Null: there is
  // none. For base/status/flight_*.h.
  // Thread: any.
  FlightGroup* flight_groups() const;
  TickClock tick_clock() const;
  int fd() const { return fd_.get(); }

  // Set by the worker while it saves; the agent then gives it more time to end.
  void SetSaving(bool saving);
  bool saving() const;

  // Publishes the death of a worker of the job. Records the first death only,
  // as one line truncated to kPeerDeathBytes.
  void PublishPeerDeath(std::string_view word);
  // Makes no system call.
  RANKRUN_PRIVATE_API bool has_peer_death() const;
  // Returns the published line; empty if there is none.
  RANKRUN_PRIVATE_API std::string PeerDeathMessage() const;
  // Sleeps until a death is published, or until `until`.
  void AwaitDeath(TimePoint until) const;

  // Counts the end of the debugger of a stop at a breakpoint; the stops are numbered from 1.
  void CountDebuggerEnd();
  uint32_t debuggers_ended() const;

  // Returns "/proc/<this process>/fd/<n>", the path by which other processes
  // open the page while it is open here.
  std::string Path() const;

 private:
  StatusPage(Fd fd, StatusPageHeader* header) : fd_(std::move(fd)), header_(header) {}

  static Result<StatusPage> Map(Fd fd);
  static Result<StatusPage> Adopt(Fd fd, pid_t agent_pid);

  Fd fd_;
  StatusPageHeader* header_;
  mutable FlightGroup* flight_groups_ = nullptr;  // null: not mapped
};

}  // namespace rankrun
