#include "agent/report/event.h"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "agent/report/last_error.h"
#include "agent/report/left_out.h"
#include "base/format.h"

namespace rankrun::agent::events {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLastLines = 20;  // of standard error

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void AddSignal(Json& json, int signal_number) {
  json["signal"] = signal_number;
  json["signal_name"] = SignalName(signal_number);
}

void AddExit(Json& json, const ProcessExit& exit) {
  if (exit.signaled) return AddSignal(json, exit.value);
  json["exit_code"] = exit.value;
}

void AddWorker(Json& json, const WorkerRecord& worker) {
  json["rank"] = worker.global_rank;
  json["local_rank"] = worker.local_rank;
  if (worker.pid != 0) json["pid"] = worker.pid;
  if (!worker.exit) {
    json["start_error"] = worker.start_error ? worker.start_error->message : "";
  } else {
    AddExit(json, *worker.exit);
    if (worker.exit->signaled) json["sent_by_rankrun"] = worker.exit->value == worker.sent_signal;
  }
  json["why"] = HowItEnded(worker);
}

Json OperationInReport(const LastOperation& operation) {
  Json json;
  json["operation"] = operation.what;
  json["group"] = operation.group;
  json["state"] =
      operation.is_under_way ? "under way" : (operation.has_failed ? "failed" : "succeeded");
  json["seconds"] = Seconds(operation.ago);
  return json;
}

Json WorkerInReport(const WorkerRecord& worker) {
  Json json;
  AddWorker(json, worker);
  if (!worker.node.empty()) json["node"] = worker.node;
  if (worker.exception) json["exception"] = *worker.exception;
  std::vector<std::string> lines = LastLinesWithException(worker.stderr_tail, kLastLines).lines;
  if (!lines.empty()) json["stderr"] = lines;
  lines = LastLinesWithException(worker.stdout_tail, kLastLines).lines;
  if (!lines.empty()) json["stdout"] = lines;
  if (!worker.stdout_file.empty()) json["stdout_file"] = worker.stdout_file;
  if (!worker.stderr_file.empty()) json["stderr_file"] = worker.stderr_file;
  for (const LastOperation& operation : worker.last_operations) {
    json["operations"].push_back(OperationInReport(operation));
  }
  if (!worker.operations_file.empty()) json["operations_file"] = worker.operations_file;
  if (!worker.stacks.frames.empty()) json["stack"] = worker.stacks.frames;
  if (!worker.stacks.note.empty()) json["stack_note"] = worker.stacks.note;
  if (!worker.stacks.file.empty()) json["stacks_file"] = worker.stacks.file;
  return json;
}

void Add(Json& json, const JobStarted& e) {
  json["version"] = e.version;
  json["node"] = e.node;
  json["guardian_pid"] = e.guardian_pid;
  json["agent_pid"] = e.agent_pid;
  json["workers"] = e.workers;
  json["max_restarts"] = e.max_restarts;
  json["program"] = e.program;
}

void Add(Json& json, const AgentRestarted& e) {
  json["agent_pid"] = e.agent_pid;
  json["incarnation"] = e.incarnation;
  if (e.restarts) {
    json["number"] = e.restarts->used;
    json["of"] = e.restarts->most;
  }
  json["why"] = e.why;
}

void Add(Json& json, const Refused& e) {
  json["why"] = e.why;
  json["exit_code"] = e.exit_code;
}

void Add(Json& json, const AttemptStarted& e) { json["store_port"] = e.store_port; }

void Add(Json& json, const WorkerStarted& e) {
  json["rank"] = e.global_rank;
  json["local_rank"] = e.local_rank;
  json["pid"] = e.pid;
}

void Add(Json& json, const WorkerEnded& e) {
  AddWorker(json, e.worker);
  if (e.lasted) json["seconds"] = Seconds(*e.lasted);
}

void Add(Json& json, const StopBegun& e) { json["why"] = e.why; }

void Add(Json& json, const Kill& e) { json["why"] = e.why; }

void Add(Json& json, const LeftBehind& e) {
  json["pids"] = e.pids;
  AddSignal(json, e.signal_number);
}

void Add(Json& json, const NodeLost& e) { json["why"] = e.why; }

void Add(Json& json, const NodeJoined& e) {
  json["node"] = e.node;
  json["incarnation"] = e.incarnation;
  json["workers"] = e.workers;
}

void Add(Json& json, const NodeRefused& e) {
  json["node"] = e.node;
  json["why"] = e.why;
}

void Add(Json& json, const NodeDropped& e) {
  json["node"] = e.node;
  json["why"] = e.why;
}

void Add(Json& json, const NodeReplaced& e) {
  json["node"] = e.node;
  json["spare"] = e.spare;
  json["failures"] = e.failures;
}

void Add(Json& json, const RoundFormed& e) {
  json["round"] = e.round;
  json["world_size"] = e.world_size;
  json["node_count"] = e.node_count;
  json["nodes"] = e.nodes;
}

void Add(Json& json, const RoundStopping& e) {
  json["round"] = e.round;
  if (!e.node.empty()) json["node"] = e.node;
  if (e.rank) json["rank"] = *e.rank;
  json["why"] = e.why;
}

void Add(Json& json, const RestartDecided& e) {
  json["round"] = e.round;
  json["number"] = e.number;
  if (e.is_free) json["is_free"] = true;
  json["delay"] = Seconds(e.pause);
  json["why"] = e.why;
}

void Add(Json& json, const VerdictGiven& e) {
  json["exit_code"] = e.exit_code;
  json["why"] = e.why.empty() ? "all workers succeeded" : e.why;
}

void Add(Json& json, const Restart& e) {
  json["number"] = e.number;
  json["of"] = e.of;
  json["delay"] = Seconds(e.delay);
  if (e.is_free) json["is_free"] = true;
  json["why"] = e.why;
}

void Add(Json& json, const Report& e) {
  json["seconds"] = Seconds(e.record.lasted);
  bool is_worker = e.record.own_cause.empty();
  const WorkerRecord& cause = e.record.workers[e.record.cause];
  json["cause"] = is_worker ? WorkerInReport(cause) : Json{{"why", e.record.own_cause}};
  json["consequences"] = Json::array();
  for (const WorkerRecord& worker : e.record.workers) {
    bool is_cause = is_worker && &worker == &cause;
    if (!is_cause) json["consequences"].push_back(WorkerInReport(worker));
  }
  for (const LeftOut& left_out : e.record.left_out) {
    Json& more = json["more_consequences"].emplace_back();
    more["ranks"] = RanksOf(left_out);
    more["count"] = left_out.count;
    if (!left_out.is_mixed && left_out.kind != EndKind::kNotStarted) AddExit(more, left_out.exit);
  }
  json["text"] = e.text;
}

void Add(Json& json, const JobEnded& e) {
  if (e.end_signal != 0) {
    AddSignal(json, e.end_signal);
  } else {
    json["exit_code"] = e.exit_code;
  }
  json["restarts"] = e.restarts;
  json["seconds"] = Seconds(e.lasted);
  json["why"] = e.why;
}

void Add(Json& json, const EventsLost& e) { json["count"] = e.count; }

struct KindName {
  std::string_view operator()(const JobStarted&) const { return "job_started"; }
  std::string_view operator()(const AgentRestarted&) const { return "agent_restarted"; }
  std::string_view operator()(const Refused&) const { return "refused"; }
  std::string_view operator()(const AttemptStarted&) const { return "attempt_started"; }
  std::string_view operator()(const WorkerStarted&) const { return "worker_started"; }
  std::string_view operator()(const WorkerEnded&) const { return "worker_ended"; }
  std::string_view operator()(const StopBegun&) const { return "stop_begun"; }
  std::string_view operator()(const Kill&) const { return "kill"; }
  std::string_view operator()(const LeftBehind&) const { return "left_behind"; }
  std::string_view operator()(const NodeLost&) const { return "node_lost"; }
  std::string_view operator()(const NodeJoined&) const { return "node_joined"; }
  std::string_view operator()(const NodeRefused&) const { return "node_refused"; }
  std::string_view operator()(const NodeDropped&) const { return "node_dropped"; }
  std::string_view operator()(const NodeReplaced&) const { return "node_replaced"; }
  std::string_view operator()(const RoundFormed&) const { return "round_formed"; }
  std::string_view operator()(const RoundStopping&) const { return "round_stopping"; }
  std::string_view operator()(const RestartDecided&) const { return "restart_decided"; }
  std::string_view operator()(const VerdictGiven&) const { return "verdict"; }
  std::string_view operator()(const Restart&) const { return "restart"; }
  std::string_view operator()(const Report&) const { return "report"; }
  std::string_view operator()(const JobEnded&) const { return "job_ended"; }
  std::string_view operator()(const EventsLost&) const { return "events_lost"; }
};

}  // namespace

Payload PayloadOf(const Decision& decision) {
  return std::visit([](const auto& event) { return Payload(event); }, decision);
}

std::string_view KindOf(const Payload& payload) { return std::visit(KindName{}, payload); }

std::string FormatTime(std::chrono::system_clock::time_point time) {
  auto micros = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
  constexpr int64_t kSecond = 1'000'000;
  int64_t fraction = (micros % kSecond + kSecond) % kSecond;
  time_t seconds = (micros - fraction) / kSecond;
  tm parts;
  gmtime_r(&seconds, &parts);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char rest[16];
  std::snprintf(rest, sizeof rest, ".%06dZ", static_cast<int>(fraction));
  return std::string(date) + rest;
}

std::string FormatEvent(const Event& event) {
  Json json;
  json["time"] = FormatTime(event.time);
  json["event"] = KindOf(event.payload);
  json["run_id"] = event.run_id;
  if (event.attempt) json["attempt"] = *event.attempt;
  std::visit([&](const auto& payload) { Add(json, payload); }, event.payload);
  constexpr int kOneLine = -1;
  return json.dump(kOneLine, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rankrun::agent::events
