#include "agent/guardian/incarnation.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rankrun::agent {

Incarnation::Incarnation(GuardianLink link, JobMemory memory, Fd liveness_socket)
    : link_(std::move(link)),
      memory_(std::move(memory)),
      record_(memory_.Read()),
      liveness_socket_(std::move(liveness_socket)) {}

void Incarnation::Write(JobRecord record) {
  if (record == record_) return;
  record_ = std::move(record);
  auto written = memory_.Write(record_);
  if (!written && !std::exchange(warned_, true)) LogWarn(written.error().message);
}

void Incarnation::KeepSecretOfFile(const std::string& secret) {
  auto kept = secrets().of_file.Keep(secret);
  if (!kept && !std::exchange(warned_, true)) LogWarn(kept.error().message);
}

void Incarnation::KeepRunId(std::string& run_id) {
  if (!is_first() && !record_.run_id.empty()) run_id = record_.run_id;
  JobRecord record = record_;
  record.run_id = run_id;
  Write(std::move(record));
}

Duration Incarnation::LeftOf(Duration limit) const {
  Duration passed = std::chrono::steady_clock::now() - record_.job_began;
  return is_first() ? limit : std::max(Duration::zero(), limit - passed);
}

void Incarnation::Note(const JobSpec& spec, int attempt, const LogDirectory* logs) {
  JobRecord record = record_;
  if (logs != nullptr) record.folder = logs->ForRecord();
  record.events_file = spec.events_file;
  record.attempt = std::max(record.attempt, attempt);
  Write(std::move(record));
}

}  // namespace rankrun::agent
