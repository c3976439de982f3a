#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_events.h"
#include "agent/report/attempt_record.h"
#include "base/clock.h"
#include "base/result.h"

namespace rankrun::agent {

// Collects the nodes' parts of the report on a failed attempt, and decides when they are merged.
// Pure.
class ReportMerger {
 public:
  // Decision of the coordinator after the attempt; empty while the attempt is being stopped.
  using Outcome = std::optional<RoundOutcome>;
  struct Sending {
    std::optional<PeerId> to;  // empty: all nodes
    JobReport report;
    std::string cause_node = {};  // of a report to all nodes: NodeOfCause
  };

  // `first_attempt`: an earlier incarnation has seen to the reports on those before.
  explicit ReportMerger(size_t max_parts, int first_attempt = 0)
      : max_parts_(max_parts), first_attempt_(first_attempt) {}

  // The part of a node is to come. It may not come if the node is forgotten.
  void Expect(PeerId peer) { awaited_.insert(peer); }
  void Forget(PeerId peer) { awaited_.erase(peer); }
  bool is_report_to_come() const { return parts_ || !awaited_.empty(); }

  // Takes a part. A node that connects again repeats its part, and gets the report again. A part
  // that comes after the report is left out: its node alone gets the report.
  // Errors: kProtocol if the part cannot be read.
  Result<std::vector<Sending>> OnPart(PeerId peer, const Report& part, const Outcome& outcome,
                                      TimePoint now);
  // Returns the last report, for a node that connects again and may have missed it. `attempts`: of
  // the job, as far as that node has seen.
  std::optional<JobReport> ReportFor(int attempts) const;
  // Returns the report once the attempt has an outcome, and all parts have arrived or are late.
  std::vector<Sending> Look(const Outcome& outcome, TimePoint now);
  // Time at which Look is due although nothing has happened.
  std::optional<TimePoint> deadline() const;

 private:
  struct Parts {
    int attempt = 0;
    std::vector<AttemptRecord> records = {};
    std::set<PeerId> senders = {};
    std::set<size_t> digests = {};  // of the parts as they were sent
    Outcome outcome = {};           // kept, because the next attempt may fail before the last part
    TimePoint deadline{};           // once there is an outcome; later parts are left out
  };
  // The last merged report, for nodes that lost their link before it arrived.
  struct Merged {
    std::set<size_t> digests;  // of its parts
    JobReport report;
  };

  bool IsSurplus(PeerId peer, size_t digest) const;
  std::vector<Sending> Merge();

  const size_t max_parts_;
  const int first_attempt_;
  std::set<PeerId> awaited_;
  std::optional<Parts> parts_;
  std::optional<Merged> merged_;
};

}  // namespace rankrun::agent
