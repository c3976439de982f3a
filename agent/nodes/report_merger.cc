#include "agent/nodes/report_merger.h"

#include <functional>
#include <string>
#include <utility>

#include "agent/nodes/job_report.h"
#include "agent/nodes/merged_report.h"

namespace rankrun::agent {
namespace {

// Time after all nodes have stopped.
constexpr std::chrono::milliseconds kPartsTimeout{1'000};

Result<AttemptRecord> DecodePart(const std::string& bytes) {
  if (bytes.size() <= kMaxPartBytes) return DecodeReport(bytes);
  return Error{ErrorCode::kProtocol, "a report of " + std::to_string(bytes.size()) +
                                         " bytes, over the limit of " +
                                         std::to_string(kMaxPartBytes)};
}

}  // namespace

Result<std::vector<ReportMerger::Sending>> ReportMerger::OnPart(PeerId peer, const Report& part,
                                                                const Outcome& outcome,
                                                                TimePoint now) {
  std::vector<Sending> sendings;
  // A node that connects again has another number.
  const size_t digest = std::hash<std::string>()(part.record);
  if (merged_ && merged_->digests.contains(digest)) {
    sendings.push_back({peer, merged_->report});
    return sendings;
  }
  if (part.attempt < first_attempt_) return sendings;
  if (parts_ && part.attempt < parts_->attempt) return sendings;
  awaited_.erase(peer);
  auto record = DecodePart(part.record);
  if (!record) return std::move(record).error();
  if (merged_ && part.attempt <= merged_->report.attempt) {
    const bool is_late = part.attempt == merged_->report.attempt;
    if (is_late) sendings.push_back({peer, merged_->report});
    return sendings;
  }
  if (parts_ && part.attempt > parts_->attempt) {
    if (!parts_->outcome) parts_->outcome = outcome;
    if (parts_->outcome) sendings = Merge();
    parts_.reset();
  }
  if (IsSurplus(peer, digest)) return sendings;
  if (!parts_) parts_ = Parts{.attempt = part.attempt};
  parts_->senders.insert(peer);
  parts_->digests.insert(digest);
  parts_->records.push_back(*std::move(record));
  for (Sending& sending : Look(outcome, now)) sendings.push_back(std::move(sending));
  return sendings;
}

bool ReportMerger::IsSurplus(PeerId peer, size_t digest) const {
  return parts_ && (parts_->senders.contains(peer) || parts_->digests.contains(digest) ||
                    parts_->records.size() >= max_parts_);
}

// A newcomer has not seen the attempt.
std::optional<JobReport> ReportMerger::ReportFor(int attempts) const {
  if (!merged_ || attempts <= merged_->report.attempt) return std::nullopt;
  return merged_->report;
}

// A node sends its part when its last worker has ended, which may take as long as
// --shutdown-timeout.
std::vector<ReportMerger::Sending> ReportMerger::Look(const Outcome& outcome, TimePoint now) {
  if (!parts_) return {};
  if (outcome && !parts_->outcome) {
    parts_->outcome = outcome;
    parts_->deadline = now + kPartsTimeout;
  }
  if (!parts_->outcome) return {};
  bool is_late = now >= parts_->deadline;
  if (!awaited_.empty() && !is_late) return {};
  return Merge();
}

std::optional<TimePoint> ReportMerger::deadline() const {
  if (!parts_ || !parts_->outcome) return std::nullopt;
  return parts_->deadline;
}

std::vector<ReportMerger::Sending> ReportMerger::Merge() {
  AttemptRecord record = ReportOnRound(std::move(parts_->records), *parts_->outcome);
  merged_ = Merged{std::move(parts_->digests),
                   JobReport{parts_->attempt, EncodeReport(record, kMaxReportBytes)}};
  parts_.reset();
  return {{std::nullopt, merged_->report, NodeOfCause(record)}};
}

}  // namespace rankrun::agent
