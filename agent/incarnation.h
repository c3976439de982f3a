#pragma once

#include "agent/guardian_link.h"
#include "agent/job_record.h"
#include "agent/job_spec.h"
#include "agent/log_directory.h"
#include "agent/worker_group.h"

namespace rankrun::agent {

// One life of an agent: its link to the guardian, what the life before has left
// to it, and what it leaves to the next.
// Thread: one at a time.
class Incarnation {
 public:
  Incarnation(GuardianLink link, JobMemory memory);
  Incarnation(const Incarnation&) = delete;
  Incarnation& operator=(const Incarnation&) = delete;

  GuardianLink& link() { return link_; }
  bool is_first() const { return record_.incarnation == 0; }

  // As the life before left it, or as it was written last. A record that is
  // not written, since memory is short, is said once.
  const JobRecord& record() const { return record_; }
  void Write(JobRecord record);

  // A job keeps the name that it had in its first life.
  void KeepRunId(std::string& run_id);
  // What is left of a time that began with the job; not below 0.
  Duration LeftOf(Duration limit) const;

  // For a job of this node alone: the state before the first attempt of this
  // life, and each state after that, with the folder of `logs`, which may be
  // null. For one of several nodes only the folder is noted.
  GroupState FirstState() const;
  void Note(const JobSpec& spec, const GroupState& state, const LogDirectory* logs);

 private:
  GuardianLink link_;
  JobMemory memory_;
  JobRecord record_;
  bool warned_ = false;
};

// Whether the agent's death in this state of its workers is one that a restart
// mends: nobody has asked for the end, and the work is not done. Pure.
bool GoesOnWithoutAgent(const GroupState& state);

}  // namespace rankrun::agent
