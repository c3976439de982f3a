#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

// A job, read from its kept report. Times are in seconds since the first event.
namespace rankrun::cli {

struct KeptOperation {
  std::string what;    // "AllReduce #12 (16 x float32, sum)"
  std::string group;   // name
  std::string state;   // "under way", "succeeded" or "failed"
  double seconds = 0;  // since its begin if it is under way, or else since its end
};

enum class KeptPart { kCause, kConsequence, kSucceeded, kUnknown };

struct KeptWorker {
  int rank = 0;
  std::string node = {};  // empty: the only one
  int pid = 0;            // 0: never started
  std::optional<double> began = {};
  std::optional<double> ended = {};
  KeptPart part = KeptPart::kUnknown;
  std::string how = {};  // it ended
  std::string exception = {};
  std::vector<std::string> last_lines = {};  // of standard error, or else of standard output
  std::vector<KeptOperation> operations = {};
};

// Workers of a large job that the report only counts.
struct KeptRanks {
  std::string ranks;  // "ranks 16-799 and 3 others"
  std::string how;    // they ended
};

struct KeptAttempt {
  int number = 0;
  double began = 0;
  std::optional<double> ended = {};
  std::vector<KeptWorker> workers = {};  // by rank
  std::vector<KeptRanks> counted = {};   // beside `workers`
  size_t reported_workers = 0;           // in the report, with those that are only counted
  std::string own_cause = {};            // instead of a worker
  std::string restart = {};              // what followed; empty: nothing
  std::string report = {};               // as shown to the user; empty: it did not fail
};

// An event that the lines of the ranks do not show.
struct KeptNote {
  double at;
  std::string kind;  // "node_lost"
  std::string text;
};

struct KeptJob {
  std::string run_id = {};
  std::string node = {};
  std::string version = {};
  std::string program = {};          // with arguments
  std::string began = {};            // "2026-01-31 12:00:00 UTC"
  std::optional<double> ended = {};  // empty: the job had not ended when the file was written
  std::string outcome = {};          // "exit code 3", "ended by SIGINT"
  std::string why = {};
  bool has_failed = true;
  std::vector<KeptAttempt> attempts = {};
  std::vector<KeptNote> notes = {};
  size_t dropped_events = 0;
};

// Parses a kept report. Fields of another type count as missing. Pure.
// Errors: kInvalid for text that is no kept report.
Result<KeptJob> ParseKeptJob(const std::string& text);

// Returns the number of ranks, as far as it is known. Pure.
size_t RankCount(const KeptJob& job);

// Returns the reports of all failed attempts as rankrun has printed them. Pure.
std::string ReportTextOf(const KeptJob& job);

}  // namespace rankrun::cli
