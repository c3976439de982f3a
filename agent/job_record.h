#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// The folder of a job's log files; see LogDirectory.
struct JobFolder {
  std::string temporary_base;  // removed at the end of the job; empty: nothing is
  std::string path;
  bool keep = false;
  bool operator==(const JobFolder&) const = default;
};

struct RestartsUsed {
  int used = 0;
  int most = 0;
  int row = 0;  // failures in a row, as RestartHistory has them
  bool operator==(const RestartsUsed&) const = default;
};

// What an agent's next incarnation, and the guardian, know of a job when the
// agent has died without a goodbye.
struct JobRecord {
  uint64_t node_id = 0;       // of this node in this job: random, made once by the guardian
  int incarnation = 0;        // of the agent that lives, or is started next; 0 for the first
  TimePoint job_began{};      // of the first of them
  std::string last_end = {};  // how the one before ended, in words; empty: there was none
  std::string run_id = {};
  std::string secret = {};  // of the job: a pipe can be read once only
  // The agent's word: the job goes on after its death, with a fresh agent.
  bool may_restart = false;
  // Of a job of this node alone: the guardian counts an agent's death as a
  // restart. Nothing: who coordinates the nodes counts.
  std::optional<RestartsUsed> restarts = {};
  std::optional<JobFolder> folder = {};
  std::string state = {};  // bytes of the coordinator's
  bool operator==(const JobRecord&) const = default;
};

// Bytes of a record, and back. Nothing for what is none. Pure.
std::string EncodeJobRecord(const JobRecord& record);
std::optional<JobRecord> DecodeJobRecord(const std::string& bytes);

// Memory that outlives the agent: two slots, each a memfd that guardian and
// agent share by fork, and no worker inherits. The older one is overwritten, so
// that a writer that is killed in the middle leaves the record before.
// No call of it can block on anything but memory.
// Thread: one at a time, in one process at a time.
class JobMemory {
 public:
  // It holds the record of a job that has just begun: node_id and job_began.
  // Errors: kSystem.
  static Result<JobMemory> Create();

  // The newest one that is whole.
  JobRecord Read() const;
  // Errors: kSystem or kExhausted; the record before is left.
  Result<void> Write(const JobRecord& record);

 private:
  struct Content;
  explicit JobMemory(std::array<Fd, 2> slots) : slots_(std::move(slots)) {}

  std::optional<Content> ReadSlot(size_t index) const;

  std::array<Fd, 2> slots_;
};

}  // namespace rankrun::agent
