#include "comm/launch/launch_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace rankrun::comm {
namespace {

using nlohmann::json;

constexpr int kExitInternalError = 205;  // rankrun's own

template <typename T>
std::optional<T> Get(const json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    return std::nullopt;  // of another type, so not the documented field
  }
}

std::string Text(const json& object, const char* name) {
  return Get<std::string>(object, name).value_or("");
}

WorkerEnd ReadWorker(const json& object) {
  return {.global_rank = Get<int>(object, "rank").value_or(0),
          .local_rank = Get<int>(object, "local_rank").value_or(0),
          .pid = Get<pid_t>(object, "pid").value_or(0),
          .exit_code = Get<int>(object, "exit_code"),
          .signal = Get<int>(object, "signal"),
          .sent_by_rankrun = Get<bool>(object, "sent_by_rankrun").value_or(false),
          .why = Text(object, "why"),
          .exception = Text(object, "exception"),
          .stderr_file = Text(object, "stderr_file")};
}

class Reader {
 public:
  void Read(const json& event) {
    std::string kind = Text(event, "event");
    if (kind == "job_started") story_.started = true;
    if (kind == "refused") story_.refusal = Text(event, "why");
    if (kind == "attempt_started") OnAttempt(event);
    if (kind == "worker_ended") SetWorker(ReadWorker(event));
    if (kind == "report") OnReport(event);
    if (kind == "job_ended") OnEnd(event);
  }

  JobStory Take() { return std::move(story_); }

 private:
  void OnAttempt(const json& event) {
    attempt_ = Get<int>(event, "attempt").value_or(0);
    story_.result.restarts = attempt_;
    story_.result.workers.clear();
  }

  void SetWorker(WorkerEnd worker) {
    auto& workers = story_.result.workers;
    auto place = std::ranges::lower_bound(workers, worker.global_rank, {}, &WorkerEnd::global_rank);
    bool known = place != workers.end() && place->global_rank == worker.global_rank;
    if (known) {
      *place = std::move(worker);
    } else {
      workers.insert(place, std::move(worker));
    }
  }

  // The report may arrive after the next attempt has started.
  void OnReport(const json& event) {
    story_.result.report = Text(event, "text");
    json cause = event.value("cause", json::object());
    story_.result.cause = Get<int>(cause, "rank");
    if (Get<int>(event, "attempt") != attempt_) return;
    SetWorker(ReadWorker(cause));
    for (const json& worker : event.value("consequences", json::array())) {
      SetWorker(ReadWorker(worker));
    }
  }

  void OnEnd(const json& event) {
    story_.ended = true;
    story_.result.why = Text(event, "why");
    story_.result.signal = Get<int>(event, "signal");
    story_.result.restarts = Get<int>(event, "restarts").value_or(attempt_);
    int by_signal = 128 + story_.result.signal.value_or(0);
    story_.result.exit_code = Get<int>(event, "exit_code").value_or(by_signal);
  }

  JobStory story_;
  int attempt_ = 0;
};

std::string RefusalOf(const JobStory& story, const std::optional<ProcessExit>& exit) {
  if (story.refusal) return "rankrun has refused the job: " + *story.refusal;
  std::string how = "in an unknown way";
  if (exit) {
    how = exit->signaled ? "by " + SignalName(exit->value)
                         : "with exit code " + std::to_string(exit->value);
  }
  return "rankrun has ended " + how +
         " before the job began; what it says is on its standard error";
}

}  // namespace

JobStory ReadStory(std::string_view events) {
  Reader reader;
  for (size_t end; (end = events.find('\n')) != std::string_view::npos;) {
    json event = json::parse(events.substr(0, end), nullptr, /*allow_exceptions=*/false);
    if (event.is_object()) reader.Read(event);
    events.remove_prefix(end + 1);
  }
  return reader.Take();
}

Result<LaunchResult> Conclude(JobStory story, std::optional<ProcessExit> exit) {
  if (story.refusal || !story.started) return Error{ErrorCode::kInvalid, RefusalOf(story, exit)};
  LaunchResult& result = story.result;
  if (!story.ended) {
    std::string by = exit && exit->signaled ? "by " + SignalName(exit->value) : "";
    result.why = "rankrun itself was ended " + (by.empty() ? "in the middle of the job" : by);
    result.exit_code = exit ? exit->ShellCode() : kExitInternalError;
    if (exit && exit->signaled) result.signal = exit->value;
  } else if (exit) {
    result.exit_code = exit->ShellCode();
  }
  return std::move(result);
}

}  // namespace rankrun::comm
