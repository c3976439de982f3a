#include "agent/nodes/control_codec.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/control/cbor.h"
#include "agent/nodes/cbor_fields.h"

namespace rankrun::agent {

// --- Tables of fields ---

template <typename F>
void Fields(F& f, Cause& m) {
  f("text", m.text);
  f("exit_code", m.exit_code);
  f("rank", m.rank);
  f("is_primary", m.is_primary);
  f("may_be_victim", m.may_be_victim);
  f("is_fatal", m.is_fatal);
  f("consumes_restart", m.consumes_restart);
  f("node", m.node);
}
template <typename F>
void Fields(F& f, StuckProcess& m) {
  f("local_rank", m.local_rank);
  f("what", m.what);
}
template <typename F>
void Fields(F& f, Hello& m) {
  f("node", m.node);
  f("incarnation", m.incarnation);
  f("name", m.name);
  f("slots", m.slots);
  f("min_nodes", m.min_nodes);
  f("max_nodes", m.max_nodes);
  f("node_rank", m.node_rank);
  f("node_index", m.node_index);
  f("addresses", m.addresses);
  f("round", m.round);
  f("attempts", m.attempts);
  f("work", m.work);
  f("failure", m.failure);
  f("stop_ms", m.stop_ms);
  f("stuck", m.stuck);
  f("liveness_port", m.liveness_port);
}
template <typename F>
void Fields(F& f, Prepared& m) {
  f("round", m.round);
  f("store_port", m.store_port);
  f("own_addresses", m.own_addresses);
  f("coordinator_address", m.coordinator_address);
}
template <typename F>
void Fields(F& f, Failed& m) {
  f("round", m.round);
  f("cause", m.cause);
}
template <typename F>
void Fields(F& f, Done& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, Stopped& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, FinishSeen& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, Leave& m) {
  f("why", m.why);
}
template <typename F>
void Fields(F& f, Close& m) {
  f("cause", m.cause);
}
template <typename F>
void Fields(F& f, Beat& m) {
  f("number", m.number);
  f("unfinished", m.unfinished);
}
template <typename F>
void Fields(F& f, Waiting& m) {
  f("text", m.text);
}
template <typename F>
void Fields(F& f, Refusal& m) {
  f("text", m.text);
}
template <typename F>
void Fields(F& f, Prepare& m) {
  f("round", m.round);
  f("attempt", m.attempt);
  f("node_rank", m.node_rank);
  f("node_count", m.node_count);
  f("first_rank", m.first_rank);
  f("world_size", m.world_size);
  f("max_restarts", m.max_restarts);
  f.Bytes("record", m.record);
}
template <typename F>
void Fields(F& f, StartRound& m) {
  f("round", m.round);
  f("store_addresses", m.store_addresses);
  f("store_port", m.store_port);
  f("store_allowlist", m.store_allowlist);
}
template <typename F>
void Fields(F& f, Stop& m) {
  f("round", m.round);
  f("why", m.why);
  f("is_failure", m.is_failure);
}
template <typename F>
void Fields(F& f, Finish& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, Report& m) {
  f("attempt", m.attempt);
  f.Bytes("record", m.record);
}
template <typename F>
void Fields(F& f, JobReport& m) {
  f("attempt", m.attempt);
  f.Bytes("record", m.record);
}
template <typename F>
void Fields(F& f, Stuck& m) {
  f("round", m.round);
  f("process", m.process);
}
template <typename F>
void Fields(F& f, NodeHealth& m) {
  f("round", m.round);
  f.Bytes("samples", m.samples);
}
template <typename F>
void Fields(F& f, NodeStacks& m) {
  f("round", m.round);
  f.Bytes("digests", m.digests);
}
template <typename F>
void Fields(F& f, StacksWanted& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, HealthWanted& m) {
  f("round", m.round);
}
template <typename F>
void Fields(F& f, HangNotice& m) {
  f("text", m.text);
}
template <typename F>
void Fields(F& f, HungRank& m) {
  f("rank", m.rank);
  f("why", m.why);
}
template <typename F>
void Fields(F& f, HangFound& m) {
  f("round", m.round);
  f("text", m.text);
  f("ranks", m.ranks);
  f("reporter", m.reporter);
}
template <typename F>
void Fields(F& f, NodeLost& m) {
  f("text", m.text);
}
template <typename F>
void Fields(F& f, Relay& m) {
  f("relay", m.kind);
  f("number", m.number);
  f.Bytes("content", m.content);
  f("room", m.room);
  f("limit_ms", m.limit_ms);
  f("long_answers", m.long_answers);
  f("node", m.node);
  f("missing", m.missing);
  f("is_refused", m.is_refused);
}
template <typename F>
void Fields(F& f, StoreClient& m) {
  f("id", m.id);
  f("address", m.address);
  f("port", m.port);
  f("store_address", m.store_address);
  f("store_port", m.store_port);
}
template <typename F>
void Fields(F& f, WhoseClients& m) {
  f("clients", m.clients);
}
template <typename F>
void Fields(F& f, ClientVerdict& m) {
  f("id", m.id);
  f("why", m.why);
  f("is_of_user", m.is_of_user);
}
template <typename F>
void Fields(F& f, ClientVerdicts& m) {
  f("verdicts", m.verdicts);
}
template <typename F>
void Fields(F& f, Verdict& m) {
  f("exit_code", m.exit_code);
  f("text", m.text);
  f("report_follows", m.report_follows);
}
template <typename F>
void Fields(F& f, RestartHistory& m) {
  f("restarts", m.restarts);
  f("consecutive_failures", m.consecutive_failures);
}
template <typename F>
void Fields(F& f, NodeAssignment& m) {
  f("node", m.node);
  f("incarnation", m.incarnation);
  f("name", m.name);
  f("slots", m.slots);
  f("first_rank", m.first_rank);
}
template <typename F>
void Fields(F& f, FailureRow& m) {
  f("node", m.node);
  f("name", m.name);
  f("first_attempt", m.first_attempt);
  f("last_attempt", m.last_attempt);
  f("failures", m.failures);
}
template <typename F>
void Fields(F& f, RoundOutcome& m) {
  f("rank", m.rank);
  f("cause", m.cause);
  f("restarts", m.restarts);
  f("is_free", m.is_free);
  f("reason", m.reason);
  f("restart_number", m.restart_number);
  f("exit_code", m.exit_code);
  f("is_fatal", m.is_fatal);
  f("attempt", m.attempt);
  f("cause_node", m.cause_node);
  f("earlier_failures", m.earlier_failures);
}
template <typename F>
void Fields(F& f, ReplacedNode& m) {
  f("node", m.node);
  f("failures", m.failures);
}
template <typename F>
void Fields(F& f, CauseHistory& m) {
  f("rows", m.rows);
  f("replaced", m.replaced);
}

template <typename F>
void Fields(F& f, CoordinatorRecord& m) {
  f("round", m.round);
  f("attempts", m.attempts);
  f("is_granted", m.is_granted);
  f("has_finished", m.has_finished);
  f("has_lost", m.has_lost);
  f("cause", m.cause);
  f("outcome", m.outcome);
  f("history", m.history);
  f("causes", m.causes);
  f("assignments", m.assignments);
  f("verdict", m.verdict);
}

constexpr NodeState LastOf(NodeState) { return NodeState::kFinished; }
constexpr RelayKind LastOf(RelayKind) { return RelayKind::kOver; }

namespace {

using cbor::Json;

// Names of the variants' alternatives, in their order.
constexpr std::array kMemberNames = {
    "hello",       "prepared", "failed",        "done",           "stopped", "finish_seen",
    "leave",       "close",    "beat",          "report",         "stuck",   "node_health",
    "node_stacks", "relay",    "whose_clients", "client_verdicts"};
constexpr std::array kCoordinatorNames = {
    "waiting",       "refusal",        "prepare",       "go",         "stop",
    "finish",        "verdict",        "beat",          "job_report", "node_lost",
    "health_wanted", "hang_notice",    "stacks_wanted", "hang_found", "relay",
    "whose_clients", "client_verdicts"};
static_assert(kMemberNames.size() == std::variant_size_v<MemberMessage>);
static_assert(kCoordinatorNames.size() == std::variant_size_v<CoordinatorMessage>);

// --- Encoding ---

template <typename Variant, size_t kCount>
std::string EncodeMessage(Variant message, const std::array<const char*, kCount>& names) {
  Json json = std::visit([](auto& m) { return cbor::Writer::ToJson(m); }, message);
  json["kind"] = names[message.index()];
  return CborOf(json);
}

// --- Decoding ---

template <typename Variant, size_t kIndex, size_t kCount>
Result<Variant> ReadAs(const std::string& kind, const Json& json,
                       const std::array<const char*, kCount>& names) {
  if constexpr (kIndex == kCount) {
    return Error{ErrorCode::kProtocol, "a message of an unknown kind"};
  } else {
    if (kind != names[kIndex]) return ReadAs<Variant, kIndex + 1>(kind, json, names);
    auto message = cbor::Read<std::variant_alternative_t<kIndex, Variant>>(json);
    if (!message) return std::move(message).error().In(kind);
    return Variant(std::move(*message));
  }
}

template <typename Variant, size_t kCount>
Result<Variant> Decode(std::string_view bytes, const std::array<const char*, kCount>& names) {
  auto json = ParseCborMap(bytes);
  if (!json) return std::move(json).error();
  auto kind = json->find("kind");
  if (kind == json->end() || !kind->is_string()) {
    return Error{ErrorCode::kProtocol, "a message without a kind"};
  }
  return ReadAs<Variant, 0>(kind->template get<std::string>(), *json, names);
}

}  // namespace

std::string Encode(const MemberMessage& message) { return EncodeMessage(message, kMemberNames); }

std::string Encode(const CoordinatorMessage& message) {
  return EncodeMessage(message, kCoordinatorNames);
}

std::string Encode(const CoordinatorRecord& record) {
  CoordinatorRecord copy = record;
  return CborOf(cbor::Writer::ToJson(copy));
}

Result<MemberMessage> DecodeMemberMessage(std::string_view bytes) {
  return Decode<MemberMessage>(bytes, kMemberNames);
}

Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view bytes) {
  return Decode<CoordinatorMessage>(bytes, kCoordinatorNames);
}

Result<CoordinatorRecord> DecodeCoordinatorRecord(std::string_view bytes) {
  auto json = ParseCborMap(bytes);
  if (!json) return std::move(json).error();
  return cbor::Read<CoordinatorRecord>(*json);
}

}  // namespace rankrun::agent
