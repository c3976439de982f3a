#pragma once

#include <utility>

#include "agent/guardian/guardian_link.h"
#include "agent/job/job_record.h"
#include "agent/job/job_spec.h"
#include "agent/output/log_directory.h"
#include "base/fd.h"

namespace rankrun::agent {

// One life of an agent: its link to the guardian, the record that the previous
// incarnation left, and the record for the next one.
// Thread: one at a time.
class Incarnation {
 public:
  // `liveness_socket`: the guardian holds it, too; empty: it could open none.
  Incarnation(GuardianLink link, JobMemory memory, Fd liveness_socket = {});
  Incarnation(const Incarnation&) = delete;
  Incarnation& operator=(const Incarnation&) = delete;

  GuardianLink& link() { return link_; }
  // Returns the socket that all incarnations share; empty: there is none.
  Fd TakeLivenessSocket() { return std::move(liveness_socket_); }
  bool is_first() const { return record_.incarnation == 0; }

  // The record as the previous incarnation left it, or as last written. Warns
  // once if a record cannot be written because memory is short.
  const JobRecord& record() const { return record_; }
  void Write(JobRecord record);
  const JobSecrets& secrets() const { return memory_.secrets(); }
  // Warns as Write does.
  void KeepSecretOfFile(const std::string& secret);

  // Sets `run_id` to that of the first incarnation and records it.
  void KeepRunId(std::string& run_id);
  // Returns how much of `limit` is left, counted from the start of the job; at
  // least 0.
  Duration LeftOf(Duration limit) const;

  // Records what the guardian needs to end the job without an agent. `logs` may be null.
  void Note(const JobSpec& spec, int attempt, const LogDirectory* logs);

 private:
  GuardianLink link_;
  JobMemory memory_;
  JobRecord record_;
  Fd liveness_socket_;
  bool warned_ = false;
};

}  // namespace rankrun::agent
