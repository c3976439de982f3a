#include "agent/supervisor/inspection.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/health/process_facts.h"
#include "agent/health/store_waits.h"
#include "agent/health/worker_peers.h"
#include "agent/inspect/worker_words.h"
#include "agent/job/environment.h"
#include "agent/supervisor/supervisor.h"
#include "base/format.h"
#include "base/host_name.h"
#include "base/status/activity.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxProgramBytes = 1024;
constexpr size_t kMaxLineBytes = 200;  // of the last line
constexpr size_t kTailBytes = 1024;    // where the last line is searched

double SecondsOf(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double SecondsSince(TimePoint time) { return SecondsOf(std::chrono::steady_clock::now() - time); }

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string DoneJson(const std::string& text) { return Dump({{"done", text}}); }
std::string ErrorJson(const std::string& text) { return Dump({{"error", text}}); }

std::string_view NameOf(const GroupState& state, bool is_pausing) {
  switch (state.phase) {
    case Phase::kRunning:
      return "running";
    case Phase::kStopping:
      return "stopping";
    case Phase::kSweeping:
      return state.attempt < 0 ? "starting" : "ending";
    case Phase::kIdle:
      return is_pausing ? "pausing" : "waiting";
    case Phase::kSucceeded:
    case Phase::kFailed:
    case Phase::kStopped:
    case Phase::kTimedOut:
      return "over";
  }
  return "";
}

std::string CommandOf(const Program& program) {
  std::string text;
  for (const std::string& argument : program.arguments) {
    text += (text.empty() ? "" : " ") + argument;
    if (text.size() > kMaxProgramBytes) break;
  }
  return text.substr(0, kMaxProgramBytes);
}

// The last line of the stream that has written last.
std::string LastLineOf(const Worker& worker) {
  const OutputStream& out = worker.standard_output();
  const OutputStream& error = worker.standard_error();
  auto lines = LastLines((error.last_read() > out.last_read() ? error : out).Tail(kTailBytes), 1);
  return lines.empty() ? "" : lines[0].substr(0, kMaxLineBytes);
}

Json PartJson(const LastOutput::Stream& stream, uint64_t after, size_t room) {
  TailBuffer::Part part = stream.tail.After(after, room);
  Json json{{"text", part.text}, {"end", part.end()}, {"skipped", part.begin - after}};
  if (part.begin < after) json["skipped"] = 0;  // of an earlier attempt
  if (!stream.file.empty()) json["file"] = stream.file;
  return json;
}

LastOutput OutputOf(const Worker& worker) {
  const OutputStream& out = worker.standard_output();
  const OutputStream& error = worker.standard_error();
  return {.pid = worker.record().pid,
          .out = {out.tail(), out.file()},
          .error = {error.tail(), error.file()}};
}

// Returns the answer to a question for output, within `request.room`.
std::string OutputJson(const LastOutput& output, Json json, const InspectRequest& request) {
  // JSON makes control characters longer, so the first try may be too long.
  for (size_t room = request.room / 3; room > 0; room /= 2) {
    json["stdout"] = PartJson(output.out, request.after, room);
    json["stderr"] = PartJson(output.error, request.after_stderr, room);
    std::string text = Dump(json);
    if (text.size() <= request.room) return text;
  }
  return ErrorJson("no room for output");
}

// Reads /proc. `store_port`: of the store, at which workers may wait; 0: none waits.
void ReadFacts(NodeStatus& status, uint16_t store_port, AwaitedFiles& files) {
  std::map<std::string, uint16_t> connections;
  if (store_port != 0) connections = ReadConnectionsTo(store_port);
  std::vector<WorkerSample*> samples;
  for (WorkerStatus& worker : status.workers) {
    if (!worker.is_alive) continue;
    worker.sample.process = ReadProcessFacts(worker.sample.pid, files);
    worker.state = StateInWords(worker.sample);
    ReadStorePorts(connections, worker.sample);
    samples.push_back(&worker.sample);
  }
  AddPeers(samples);
  std::vector<NodeStatus> nodes{std::move(status)};
  ShareStoreWaits(nodes);
  status = std::move(nodes[0]);
}

}  // namespace

Inspection::Inspection(Supervisor& supervisor)
    : supervisor_(supervisor),
      stacks_(supervisor.loop_, supervisor.spawner_),
      self_(std::make_shared<Inspection*>(this)),
      inspector_(supervisor.loop_, OptionsOf(), Callbacks()) {}

Inspection::~Inspection() { *self_ = nullptr; }

Inspector::Options Inspection::OptionsOf() const {
  const JobSpec& spec = supervisor_.spec_;
  auto value_of = [&spec](const char* name) {
    return VariableOf(spec.environment, name).value_or("");
  };
  SocketVariables variables{.socket_dir = value_of("RANKRUN_SOCKET_DIR"),
                            .runtime_dir = value_of("XDG_RUNTIME_DIR")};
  return {.places = {.folders = SocketFolders(variables, geteuid()),
                     .spare_prefix = SpareFolderPrefix(variables, geteuid())},
          .name = SocketName(spec.run_id, getpid()),
          .node = spec.nodes ? spec.nodes->node_name : HostName()};
}

Inspector::Callbacks Inspection::Callbacks() {
  Inspector::Callbacks callbacks{.answer = [this](const InspectRequest& request, Reply reply) {
    Answer(request, std::move(reply));
  }};
  if (!supervisor_.spec_.nodes) return callbacks;
  callbacks.ask_others = [this](uint64_t number, const InspectRequest& request) {
    const auto limit = AnswerTimeOf(request.kind).count();
    return supervisor_.membership_->SendRelay({.kind = RelayKind::kRequest,
                                               .number = number,
                                               .content = EncodeRequest(request),
                                               .limit_ms = static_cast<uint32_t>(limit),
                                               .long_answers = LongAnswersTo(request)});
  };
  return callbacks;
}

std::vector<WaitingClient> Inspection::NoteStoreWaits(
    const std::vector<StoreWaitTimes::Entry>& waits) {
  return store_times_.Note(waits, std::chrono::steady_clock::now());
}

void Inspection::KeepOutput() {
  std::vector<LastOutput> workers;
  for (auto& worker : supervisor_.attempt_->workers()) workers.push_back(OutputOf(*worker));
  ended_.Keep(supervisor_.state_.attempt, supervisor_.place_.first_rank, std::move(workers));
}

void Inspection::OnRelay(const Relay& relay) {
  switch (relay.kind) {
    case RelayKind::kRequest:
      return inspector_.AnswerFor(
          relay.content, relay.room, [owner = self_, number = relay.number](std::string json) {
            if (*owner == nullptr) return;
            (*owner)->supervisor_.membership_->SendRelay(
                {.kind = RelayKind::kAnswer, .number = number, .content = std::move(json)});
          });
    case RelayKind::kAnswer:
      return inspector_.OnAnswer(relay.number, relay.node, relay.content);
    case RelayKind::kOver:
      return relay.is_refused.value_or(false) ? inspector_.OnRefused(relay.number)
                                              : inspector_.OnOver(relay.number, relay.missing);
  }
}

void Inspection::Answer(const InspectRequest& request, Reply reply) {
  switch (request.kind) {
    case InspectRequest::Kind::kJob:
      return reply(EncodeStatus(Status(), request.room));
    case InspectRequest::Kind::kStatus:
      return AnswerStatus(request.room, std::move(reply));
    case InspectRequest::Kind::kEvents:
      return reply(Events(request));
    case InspectRequest::Kind::kLogs:
      return reply(Logs(request));
    case InspectRequest::Kind::kStop:
      return reply(Stop());
    case InspectRequest::Kind::kRestart:
      return reply(Restart());
    case InspectRequest::Kind::kDrain:
      return reply(Drain(request));
    case InspectRequest::Kind::kStacks:
      return AnswerStacks(request, reply);
  }
}

NodeStatus Inspection::Status() const {
  const JobSpec& spec = supervisor_.spec_;
  const NodePlace& place = supervisor_.place_;
  const std::string waits =
      supervisor_.membership_ != nullptr ? supervisor_.membership_->waits() : "";
  bool is_placed = supervisor_.state_.attempt >= 0 && waits.empty();
  return {
      .job = spec.run_id,
      .node = spec.nodes ? spec.nodes->node_name : HostName(),
      .version = spec.version,
      .program = CommandOf(spec.program),
      .agent = getpid(),
      .guardian = supervisor_.guardian_,
      .phase = std::string(NameOf(supervisor_.state_, supervisor_.coordinator_->is_pausing())),
      .attempt = supervisor_.state_.attempt,
      .node_rank = is_placed ? place.node_rank : -1,
      .nodes = is_placed ? place.node_count : 1,
      .world_size = is_placed ? place.world_size : spec.workers,
      .max_restarts = spec.max_restarts,
      .seconds = SecondsSince(supervisor_.incarnation_.record().job_began),
      .attempt_seconds = supervisor_.attempt_ ? SecondsSince(supervisor_.attempt_->started()) : 0,
      .waits = waits};
}

WorkerStatus Inspection::StatusOf(const Worker& worker) const {
  const WorkerRecord& record = worker.record();
  WorkerStatus status{.state = "starting", .sample = worker.Sample()};
  status.sample.pid = record.pid;
  status.is_alive = record.pid != 0 && worker.IsProcess(record.pid);
  status.last_line = LastLineOf(worker);
  if (record.exit || record.start_error) {
    status.state = HowItEnded(record);
    status.seconds = record.exit ? SecondsSince(record.ended) : 0;
    status.doing = record.activity.what;
    return status;
  }
  status.seconds = SecondsSince(supervisor_.attempt_->started());
  if (std::ranges::count(supervisor_.breakpoints_.Held(), record.pid) > 0) {
    status.doing = "held at a breakpoint";
    return status;
  }
  if (!status.is_alive || worker.status_page() == nullptr) return status;
  WorkerActivity activity = ReadActivity(*worker.status_page());
  status.doing = activity.what;
  status.doing_seconds = SecondsOf(activity.lasted);
  auto quiet = supervisor_.quiet_notice_.DoingOf(status.sample, std::chrono::steady_clock::now());
  if (quiet && status.doing.empty()) {
    status.doing = quiet->what;
    status.doing_seconds = SecondsOf(quiet->lasted);
  }
  return status;
}

// Memory is read here, /proc in the pool.
void Inspection::AnswerStatus(size_t room, Reply reply) {
  auto status = std::make_shared<NodeStatus>(Status());
  if (const Attempt* attempt = supervisor_.attempt_.get()) {
    for (auto& worker : attempt->workers()) status->workers.push_back(StatusOf(*worker));
  }
  status->store_clients = NoteStoreWaits(supervisor_.store_.Waits());
  // In a job of several nodes another one may have the store.
  bool may_wait = !status->store_clients.empty() || supervisor_.spec_.nodes;
  uint16_t port = may_wait ? supervisor_.place_.master_port : 0;
  auto json = std::make_shared<std::string>();
  RunInPool(
      supervisor_.loop_,
      [status, json, room, port, files = files_] {
        ReadFacts(*status, port, *files);
        *json = EncodeStatus(*status, room);
      },
      [owner = self_, json, reply = std::move(reply)] {
        if (*owner != nullptr) reply(std::move(*json));
      });
}

std::string Inspection::Events(const InspectRequest& request) const {
  constexpr size_t kAround = 128;
  EventRing::Lines found = supervisor_.event_log_->ring().After(
      request.after, request.room - std::min(request.room, kAround));
  std::string events;
  for (const std::string& line : found.lines) events += (events.empty() ? "" : ",") + line;
  return "{\"last\":" + std::to_string(found.last) +
         ",\"dropped\":" + std::to_string(found.dropped) + ",\"events\":[" + events + "]}";
}

std::string Inspection::Logs(const InspectRequest& request) const {
  if (ended_.HasMore(request.rank, request.attempt, request.after, request.after_stderr)) {
    return EndedLogs(request);
  }
  const Attempt* attempt = supervisor_.attempt_.get();
  if (attempt == nullptr) return EndedLogs(request);
  // Too large for a rank of another node, also if it is below our first.
  const auto local_rank = static_cast<size_t>(request.rank - supervisor_.place_.first_rank);
  if (local_rank >= attempt->workers().size()) return "{}";
  const Worker& worker = *attempt->workers()[local_rank];
  Json json{{"rank", request.rank},
            {"pid", worker.record().pid},
            {"attempt", supervisor_.state_.attempt},
            {"is_alive", worker.IsProcess(worker.record().pid)}};
  return OutputJson(OutputOf(worker), std::move(json), request);
}

// Returns output of the attempt before the present one, also between attempts.
std::string Inspection::EndedLogs(const InspectRequest& request) const {
  const LastOutput* output = ended_.Find(request.rank);
  if (output == nullptr) return "{}";
  Json json{{"rank", request.rank},
            {"pid", output->pid},
            {"attempt", ended_.attempt()},
            {"is_alive", false}};
  return OutputJson(*output, std::move(json), request);
}

void Inspection::AnswerStacks(const InspectRequest& request, const Reply& reply) {
  std::vector<const WorkerRecord*> workers;
  if (const Attempt* attempt = supervisor_.attempt_.get()) {
    for (auto& worker : attempt->workers()) workers.push_back(&worker->record());
  }
  stacks_.Answer(RanksOf(workers, supervisor_.place_.first_rank, request.ranks), request.room,
                 [owner = self_, reply](std::string json) {
                   if (*owner != nullptr) reply(std::move(json));
                 });
}

std::string Inspection::Stop() {
  const GroupState& state = supervisor_.state_;
  // A node that is drained has got SIGTERM, but its job goes on.
  bool is_drained =
      supervisor_.membership_ != nullptr && state.stop_signal == SIGTERM && !has_closed_;
  if (is_drained && !state.over()) {
    has_closed_ = true;
    supervisor_.CloseJob("stopped by rankctl", 128 + SIGTERM);
    return DoneJson("this node leaves the job already; the other nodes are to end, too");
  }
  if (state.over() || state.stop_signal != 0) return DoneJson("the job is ending already");
  supervisor_.output_.Say("rankrun: rankctl stop: the job is to end\n");
  if (supervisor_.membership_ == nullptr) {
    supervisor_.StopGently({SIGTERM, getpid(), kUnknownSender});
  } else {
    has_closed_ = true;
    supervisor_.Post(StopRequested{SIGTERM});
    supervisor_.CloseJob("stopped by rankctl", 128 + SIGTERM);
  }
  return DoneJson("the workers have up to " + FormatSeconds(supervisor_.spec_.shutdown_timeout) +
                  " to end");
}

std::string Inspection::Restart() {
  const GroupState& state = supervisor_.state_;
  CoordinatorClient& coordinator = *supervisor_.coordinator_;
  if (state.phase != Phase::kRunning && !coordinator.is_pausing()) {
    return ErrorJson("the workers cannot be restarted now: the job is " +
                     std::string(NameOf(state, false)));
  }
  supervisor_.output_.Say("rankrun: rankctl restart: all workers start again\n");
  if (coordinator.is_pausing()) {
    coordinator.EndPause();
  } else {
    coordinator.NoteFailure(
        {.text = kAskedByRankctl, .exit_code = 1, .is_primary = false, .consumes_restart = false});
    if (supervisor_.membership_ != nullptr) {
      supervisor_.event_log_->RestartAsked(state.attempt, kAskedByRankctl);
    }
    supervisor_.Post(RestartRequested{});
  }
  return DoneJson("all workers start again; no restart of --max-restarts is used up");
}

std::string Inspection::Drain(const InspectRequest& request) {
  const JobSpec& spec = supervisor_.spec_;
  if (!spec.nodes) return ErrorJson("this job has one node; rankctl stop ends it");
  bool is_meant = request.node == spec.nodes->node_name &&
                  (request.rank < 0 || request.rank == supervisor_.place_.node_rank);
  if (!is_meant) return "{}";
  const GroupState& state = supervisor_.state_;
  if (state.over() || state.stop_signal != 0) return DoneJson("the node is ending already");
  supervisor_.output_.Say("rankrun: rankctl drain: this node leaves the job\n");
  supervisor_.Post(StopRequested{SIGTERM});
  supervisor_.membership_->RequestLeave("rankctl drain");
  return DoneJson("node " + spec.nodes->node_name + " leaves the job");
}

}  // namespace rankrun::agent
