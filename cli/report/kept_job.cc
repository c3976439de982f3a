#include "cli/report/kept_job.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace rankrun::cli {
namespace {

using Json = nlohmann::json;

std::string TextOf(const Json& json, const char* name) {
  auto field = json.find(name);
  return field != json.end() && field->is_string() ? field->get<std::string>() : "";
}

std::optional<double> NumberOf(const Json& json, const char* name) {
  auto field = json.find(name);
  if (field == json.end() || !field->is_number()) return std::nullopt;
  return field->get<double>();
}

int IntOf(const Json& json, const char* name) {
  constexpr double kMax = 2'000'000'000;
  return static_cast<int>(std::clamp(NumberOf(json, name).value_or(0), -kMax, kMax));
}

const Json& ListOf(const Json& json, const char* name) {
  static const Json kNone = Json::array();
  auto field = json.find(name);
  return field != json.end() && field->is_array() ? *field : kNone;
}

std::vector<std::string> LinesOf(const Json& json, const char* name) {
  std::vector<std::string> lines;
  for (const Json& line : ListOf(json, name)) {
    if (line.is_string()) lines.push_back(line.get<std::string>());
  }
  return lines;
}

// Returns the seconds since 1970 of "2026-01-31T12:00:00.123456Z".
std::optional<double> TimeOf(const std::string& text) {
  tm parts{};
  double seconds = 0;
  const int found =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds);
  if (found != 6 || !std::isfinite(seconds)) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(timegm(&parts)) + seconds;
}

class Reader {
 public:
  Result<KeptJob> Read(const std::string& text) {
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("format")) {
      return Error{ErrorCode::kInvalid, "is no report of rankrun"};
    }
    job_.dropped_events =
        static_cast<size_t>(std::max(NumberOf(document, "dropped_events").value_or(0), 0.0));
    for (const Json& event : ListOf(document, "events")) {
      if (event.is_object()) Add(event);
    }
    if (job_.attempts.empty()) return Error{ErrorCode::kInvalid, "has no attempt"};
    for (KeptAttempt& attempt : job_.attempts) {
      std::ranges::sort(attempt.workers, {}, &KeptWorker::rank);
    }
    return std::move(job_);
  }

 private:
  void Add(const Json& event) {
    auto time = TimeOf(TextOf(event, "time"));
    if (!time) return;
    if (!first_) SetStart(event, *time);
    const double at = *time - *first_;
    const std::string kind = TextOf(event, "event");
    if (kind == "job_started") return AddJob(event);
    if (kind == "job_ended") return AddEnd(event, at);
    if (kind == "attempt_started") return AddAttempt(event, at);
    if (kind == "worker_started" || kind == "worker_ended") return AddWorker(event, kind, at);
    if (kind == "report") return AddReport(event, at);
    AddNote(event, kind, at);
  }

  void SetStart(const Json& event, double time) {
    first_ = time;
    job_.run_id = TextOf(event, "run_id");
    job_.began = TextOf(event, "time").substr(0, sizeof "2026-01-31T12:00:00" - 1) + " UTC";
    std::ranges::replace(job_.began, 'T', ' ');
    job_.began.replace(job_.began.size() - 3, 3, "UTC");
  }

  void AddJob(const Json& event) {
    job_.node = TextOf(event, "node");
    job_.version = TextOf(event, "version");
    for (const std::string& argument : LinesOf(event, "program")) {
      job_.program += (job_.program.empty() ? "" : " ") + argument;
    }
  }

  void AddEnd(const Json& event, double at) {
    job_.ended = at;
    job_.why = TextOf(event, "why");
    const std::string signal = TextOf(event, "signal_name");
    const int code = IntOf(event, "exit_code");
    job_.outcome = signal.empty() ? "exit code " + std::to_string(code) : "ended by " + signal;
    job_.has_failed = !signal.empty() || code != 0;
    if (!job_.attempts.empty() && !job_.attempts.back().ended) job_.attempts.back().ended = at;
  }

  void AddAttempt(const Json& event, double at) {
    if (!job_.attempts.empty() && !job_.attempts.back().ended) job_.attempts.back().ended = at;
    job_.attempts.push_back({.number = IntOf(event, "attempt"), .began = at});
  }

  KeptAttempt* AttemptOf(const Json& event) {
    const int number = IntOf(event, "attempt");
    auto found = std::ranges::find(job_.attempts, number, &KeptAttempt::number);
    return found == job_.attempts.end() ? nullptr : &*found;
  }

  // Returns the attempt of an event. If its start is unknown because the oldest events were
  // dropped, it began at the given time. Null: the event names none.
  KeptAttempt* AttemptAt(const Json& event, double began) {
    if (!NumberOf(event, "attempt")) return nullptr;
    if (KeptAttempt* known = AttemptOf(event)) return known;
    const int number = IntOf(event, "attempt");
    auto place = std::ranges::upper_bound(job_.attempts, number, {}, &KeptAttempt::number);
    return &*job_.attempts.insert(place, {.number = number, .began = began});
  }

  static KeptWorker& WorkerOf(KeptAttempt& attempt, const Json& json) {
    const int rank = IntOf(json, "rank");
    auto found = std::ranges::find(attempt.workers, rank, &KeptWorker::rank);
    if (found == attempt.workers.end())
      return attempt.workers.emplace_back(KeptWorker{.rank = rank});
    return *found;
  }

  void AddWorker(const Json& event, const std::string& kind, double at) {
    KeptAttempt* attempt = AttemptAt(event, at);
    if (attempt == nullptr) return;
    KeptWorker& worker = WorkerOf(*attempt, event);
    worker.pid = IntOf(event, "pid");
    if (kind == "worker_started") {
      worker.began = at;
      return;
    }
    worker.ended = at;
    worker.how = TextOf(event, "why");
    const bool succeeded = NumberOf(event, "exit_code") == 0;
    worker.part = succeeded ? KeptPart::kSucceeded : KeptPart::kConsequence;
    attempt->ended = std::max(at, attempt->ended.value_or(at));
  }

  void AddReport(const Json& event, double at) {
    const double lasted = std::max(NumberOf(event, "seconds").value_or(0), 0.0);
    KeptAttempt* attempt = AttemptAt(event, std::max(at - lasted, 0.0));
    if (attempt == nullptr) return;
    attempt->report = TextOf(event, "text");
    if (!attempt->ended) attempt->ended = lasted > 0 ? attempt->began + lasted : at;
    for (const Json& worker : ListOf(event, "consequences")) AddDetails(*attempt, worker);
    attempt->reported_workers = ListOf(event, "consequences").size();
    for (const Json& more : ListOf(event, "more_consequences")) AddCounted(*attempt, more);
    auto cause = event.find("cause");
    if (cause == event.end() || !cause->is_object()) return;
    if (!cause->contains("rank")) {
      attempt->own_cause = TextOf(*cause, "why");
      return;
    }
    attempt->reported_workers += 1;
    AddDetails(*attempt, *cause);
    WorkerOf(*attempt, *cause).part = KeptPart::kCause;
  }

  // Adds workers that a report only counts.
  static void AddCounted(KeptAttempt& attempt, const Json& json) {
    if (!json.is_object()) return;
    std::string how = "ended in other ways";
    if (auto code = NumberOf(json, "exit_code")) {
      how = "exit code " + std::to_string(IntOf(json, "exit_code"));
    } else if (!TextOf(json, "signal_name").empty()) {
      how = "killed by " + TextOf(json, "signal_name");
    }
    attempt.counted.push_back({.ranks = TextOf(json, "ranks"), .how = how});
    attempt.reported_workers += static_cast<size_t>(std::max(IntOf(json, "count"), 0));
  }

  // Adds what a report knows of a worker, perhaps one of another node.
  static void AddDetails(KeptAttempt& attempt, const Json& json) {
    if (!json.is_object()) return;
    KeptWorker& worker = WorkerOf(attempt, json);
    if (worker.pid == 0) worker.pid = IntOf(json, "pid");
    worker.node = TextOf(json, "node");
    worker.how = TextOf(json, "why");
    const bool succeeded = NumberOf(json, "exit_code") == 0;
    worker.part = succeeded ? KeptPart::kSucceeded : KeptPart::kConsequence;
    worker.exception = TextOf(json, "exception");
    worker.last_lines = LinesOf(json, "stderr");
    if (worker.last_lines.empty()) worker.last_lines = LinesOf(json, "stdout");
    for (const Json& operation : ListOf(json, "operations")) {
      if (!operation.is_object()) continue;
      worker.operations.push_back({.what = TextOf(operation, "operation"),
                                   .group = TextOf(operation, "group"),
                                   .state = TextOf(operation, "state"),
                                   .seconds = NumberOf(operation, "seconds").value_or(0)});
    }
  }

  void AddNote(const Json& event, const std::string& kind, double at) {
    std::string text = TextOf(event, "why");
    if (kind == "node_joined") text = TextOf(event, "node");
    if (kind == "round_formed") text = std::to_string(IntOf(event, "node_count")) + " nodes";
    if (kind == "restart") {
      const bool is_free = event.value("is_free", Json()) == true;
      std::string restart = is_free ? "a restart that is not counted"
                                    : "restart " + std::to_string(IntOf(event, "number")) + " of " +
                                          std::to_string(IntOf(event, "of"));
      if (KeptAttempt* attempt = AttemptOf(event)) attempt->restart = restart;
      text = restart + ": " + text;
    }
    job_.notes.push_back({at, kind, std::move(text)});
  }

  KeptJob job_;
  std::optional<double> first_;  // time of the first event, in seconds since 1970
};

}  // namespace

Result<KeptJob> ParseKeptJob(const std::string& text) { return Reader().Read(text); }

size_t RankCount(const KeptJob& job) {
  size_t ranks = 0;
  for (const KeptAttempt& attempt : job.attempts) {
    ranks = std::max({ranks, attempt.workers.size(), attempt.reported_workers});
  }
  return ranks;
}

std::string ReportTextOf(const KeptJob& job) {
  std::string text;
  for (const KeptAttempt& attempt : job.attempts) text += attempt.report;
  return text;
}

}  // namespace rankrun::cli
