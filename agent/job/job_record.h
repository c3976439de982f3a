#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/job/kept_secret.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// Folder of a job's log files; see LogDirectory.
struct JobFolder {
  std::string temporary_base;  // removed at the end of the job; empty: none
  std::string path;
  bool keep = false;
  bool operator==(const JobFolder&) const = default;
};

// The secrets that a node was given; none may be read a second time.
struct JobSecrets {
  KeptSecret of_variable;  // which the guardian has removed from its environment
  KeptSecret of_file;      // a pipe, or a file that may be deleted or replaced
};

struct RestartsUsed {
  int used = 0;
  int most = 0;
  int consecutive_failures = 0;  // as in RestartHistory
  bool operator==(const RestartsUsed&) const = default;
};

// State of a job that outlives its agent: the guardian and the next incarnation
// read it after an agent has died without a goodbye.
struct JobRecord {
  uint64_t node_id = 0;       // random id of this node in this job, chosen once by the guardian
  int incarnation = 0;        // of the running agent, or of the next one; 0 for the first
  TimePoint job_began{};      // start of the first incarnation
  std::string last_end = {};  // how the previous incarnation ended, for messages; empty: none
  std::string run_id = {};
  std::string events_file = {};  // empty: none
  int attempt = 0;               // that has begun last
  // Set by the agent: after its death the guardian starts another agent.
  bool may_restart = false;
  // Set for a job on this node alone: the guardian counts an agent's death as a
  // restart. Empty for several nodes, where the coordinator counts.
  std::optional<RestartsUsed> restarts = {};
  std::optional<JobFolder> folder = {};
  std::string state = {};  // of the coordinator, encoded
  bool operator==(const JobRecord&) const = default;
};

// Encode and decode a record. Decoding returns nothing for invalid bytes. Pure.
std::string EncodeJobRecord(const JobRecord& record);
std::optional<JobRecord> DecodeJobRecord(const std::string& bytes);

// Memory that outlives the agent: two slots, each a memfd. The guardian and the
// agent share them by fork; workers do not inherit them. Write overwrites the
// older slot, so that a writer killed half-way leaves the previous record
// intact. No call blocks on anything but memory.
// Thread: one at a time, in one process at a time.
class JobMemory {
 public:
  // Returns memory with the record of a job that has just begun: its node_id
  // and job_began are set. Takes the variable of a secret out of the environment.
  // Errors: kSystem.
  static Result<JobMemory> Create(const char* secret_variable = nullptr);

  // Returns the newest complete record.
  JobRecord Read() const;
  // Errors: kSystem or kExhausted; the previous record remains.
  Result<void> Write(const JobRecord& record);
  const JobSecrets& secrets() const { return secrets_; }

 private:
  struct Content;
  JobMemory(std::array<Fd, 2> slots, JobSecrets secrets)
      : slots_(std::move(slots)), secrets_(std::move(secrets)) {}

  std::optional<Content> ReadSlot(size_t index) const;

  std::array<Fd, 2> slots_;
  JobSecrets secrets_;
};

}  // namespace rankrun::agent
