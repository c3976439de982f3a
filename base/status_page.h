#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/activity_table.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/ticks.h"

namespace rankrun {

// The page through which a worker shows its agent what it does, and the agent
// tells it who has died: a memory file that outlives the worker. Its header says
// whose page it is; the table of activities lies behind.
constexpr uint64_t kStatusPageMagic = 0x31455441'54535252;  // "RRSTATE1", little-endian
constexpr uint32_t kStatusPageVersion = 2;
constexpr size_t kStatusPageBytes = 64 * 1024;
constexpr size_t kDeathWordBytes = 255;

struct StatusPageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t size_bytes;
  uint64_t inode;          // of the memory file: a copy has another one
  int32_t agent_pid;       // as in RANKRUN_STATUS_PATH
  uint32_t saving;         // by the worker: 1 while it saves what must not be cut short
  uint64_t created_ticks;  // when the agent made it
  int64_t created_time;    // the same by CLOCK_MONOTONIC, in nanoseconds
  // The agent's half, in a cache line that the worker never writes. The text is
  // written before the sequence, once: who dies in between has told nothing.
  alignas(64) uint32_t death_sequence;   // 0: nobody has died; a futex
  char death_word[kDeathWordBytes + 1];  // ends with a zero
};

// In a page of memory of its own, which costs none while nothing is written.
constexpr size_t kActivityTableAt = 4096;
static_assert(sizeof(StatusPageHeader) <= kActivityTableAt);
static_assert(kActivityTableAt + sizeof(ActivityTable) <= kStatusPageBytes);

// A status page mapped into this process. Unmapped at the end.
// Thread: one at a time, but for what its layout says about other processes.
class StatusPage {
 public:
  // The agent's side: a new page, sealed against resizing.
  static Result<StatusPage> Create();

  // The worker's side: the page named by RANKRUN_STATUS_FD, or else by
  // RANKRUN_STATUS_PATH. Errors: kNotFound when neither is set; kInvalid when
  // what they name is not a page of the agent in RANKRUN_STATUS_PATH (the
  // program may have put something else at that descriptor).
  static Result<StatusPage> FromEnvironment();

  // The page of this process, looked for once; null if there is none. Never
  // unmapped.
  static const StatusPage* OfThisProcess();

  StatusPage(StatusPage&& other) noexcept;
  StatusPage& operator=(StatusPage&& other) noexcept;
  ~StatusPage();

  const StatusPageHeader& header() const { return *header_; }
  // For base/activity.h.
  ActivityTable& activities() const;
  TickClock tick_clock() const;
  int fd() const { return fd_.get(); }

  // The worker's word that it saves; the agent awaits its end for longer then.
  void SetSaving(bool saving);
  bool saving() const;

  // The agent's word that a worker of the job has died, one line of which it
  // takes kDeathWordBytes bytes at most. Told once: of several, the first.
  void TellDeath(std::string_view word);
  // No system call.
  bool death_told() const;
  // Empty: none was told.
  std::string DeathWord() const;
  // Sleeps until a death is told, `until` at the longest.
  void AwaitDeath(TimePoint until) const;

  // "/proc/<this process>/fd/<n>": how others open it while we have it open.
  std::string Path() const;

 private:
  StatusPage(Fd fd, StatusPageHeader* header) : fd_(std::move(fd)), header_(header) {}

  static Result<StatusPage> Map(Fd fd);
  static Result<StatusPage> Adopt(Fd fd, pid_t agent_pid);

  Fd fd_;
  StatusPageHeader* header_;
};

}  // namespace rankrun
