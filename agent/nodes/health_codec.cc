#include "agent/nodes/health_codec.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "agent/control/cbor.h"
#include "agent/nodes/cbor_fields.h"
#include "base/printable.h"

namespace rankrun {

// Adds a time in whole milliseconds, a year at most.
template <typename F>
void AsMilliseconds(F& f, const char* name, Duration& time) {
  constexpr auto kMaxCount = std::chrono::milliseconds(std::chrono::hours(24 * 365)).count();
  int64_t count = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  f(name, count);
  time = std::chrono::milliseconds(std::clamp<int64_t>(count, 0, kMaxCount));
}

// Adds a time in whole milliseconds of its clock, a century at most.
template <typename F>
void AsMilliseconds(F& f, const char* name, std::optional<TimePoint>& time) {
  constexpr auto kMaxCount = std::chrono::milliseconds(std::chrono::years(100)).count();
  std::optional<int64_t> count;
  if (time) {
    count = std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count();
  }
  f(name, count);
  if (count) time = TimePoint(std::chrono::milliseconds(std::clamp<int64_t>(*count, 0, kMaxCount)));
}

template <typename F>
void Fields(F& f, ActivityRecord& m) {
  f("kind", m.kind);
  f("dtype", m.dtype);
  f("op", m.op);
  f("root", m.root);
  f("number", m.number);
  f("count", m.count);
  f("fingerprint", m.fingerprint);
}

template <typename F>
void Fields(F& f, GroupActivity& m) {
  f("name", m.name);
  f("size", m.size);
  f("last", m.last);
  f("completed", m.completed);
  f("is_under_way", m.is_under_way);
  AsMilliseconds(f, "since_entered_ms", m.since_entered);
  std::optional<uint64_t> unawaited;  // a node of an older version sends none
  if (m.unawaited > Duration::zero()) unawaited = m.unawaited / std::chrono::milliseconds(1);
  f("unawaited_ms", unawaited);
  const auto most = static_cast<uint64_t>(m.since_entered / std::chrono::milliseconds(1));
  m.unawaited = std::chrono::milliseconds(std::min(unawaited.value_or(0), most));
}

namespace agent {

using std::chrono::milliseconds;
constexpr uint64_t kMaxMilliseconds = 365ULL * 24 * 3'600 * 1'000;

constexpr CallKind LastOf(CallKind) { return CallKind::kOther; }
template <typename F>
void Fields(F& f, ProcessFacts& m) {
  auto state = static_cast<uint8_t>(m.state);
  f("state", state);
  m.state = state < 0x80 ? static_cast<char>(state) : '\0';
  f("wait_channel", m.wait_channel);
  f("call", m.call);
  f("call_name", m.call_name);
  f("file", m.file);
  f("tracer", m.tracer);
  f("tracer_name", m.tracer_name);
  f("resident_bytes", m.resident_bytes);
  f("io_bytes", m.io_bytes);
  std::optional<std::string> detail;  // a node of an older version sends none
  if (!m.file_detail.empty()) detail = m.file_detail;
  f("file_detail", detail);
  m.file_detail = detail.value_or("");
}

// Connections as two lists, because a record with names takes four times as many bytes.
template <typename F>
void ConnectionFields(F& f, std::vector<PeerConnection>& connections) {
  std::vector<uint64_t> ids;
  std::vector<uint64_t> times;
  for (const PeerConnection& connection : connections) {
    ids.push_back(connection.id);
    times.push_back(static_cast<uint64_t>(connection.since_received / milliseconds(1)));
  }
  f("connections", ids);
  f("since_received_ms", times);
  connections.clear();
  for (size_t i = 0; i < std::min({ids.size(), times.size(), kMaxConnections}); ++i) {
    const auto count = static_cast<int64_t>(std::min(times[i], kMaxMilliseconds));
    connections.push_back({ids[i], milliseconds(count)});
  }
}

template <typename F>
void Fields(F& f, WorkFacts& m) {
  AsMilliseconds(f, "cpu_time_ms", m.cpu_time);
  AsMilliseconds(f, "main_cpu_time_ms", m.main_cpu_time);
  f("io_bytes", m.io_bytes);
  f("written_bytes", m.written_bytes);
  f("received_bytes", m.received_bytes);
  f("wakes", m.wakes);
  f("knows_connections", m.knows_connections);
  ConnectionFields(f, m.connections);
  f("awaited_connection", m.awaited_connection);
}

template <typename F>
void Fields(F& f, WorkerSample& m) {
  f("node", m.node);
  AsMilliseconds(f, "taken_ms", m.taken);
  f("global_rank", m.global_rank);
  f("local_rank", m.local_rank);
  f("pid", m.pid);
  f("has_ended", m.has_ended);
  AsMilliseconds(f, "ended_for_ms", m.ended_for);
  f("is_saving", m.is_saving);
  f("is_at_prompt", m.is_at_prompt);
  AsMilliseconds(f, "cpu_time_ms", m.cpu_time);
  f("groups", m.groups);
  f("has_all_groups", m.has_all_groups);
  f("awaited", m.awaited);
  f("awaited_rank", m.awaited_rank);
  AsMilliseconds(f, "awaited_for_ms", m.awaited_for);
  std::optional<bool> uses_library;  // a node of an older version sends none
  if (m.uses_library) uses_library = true;
  f("uses_library", uses_library);
  m.uses_library = uses_library.value_or(false);
  f("store_changes", m.store_changes);
  f("store_ports", m.store_ports);
  f("process", m.process);
  f("work", m.work);
}

template <typename F>
void Fields(F& f, WaitingClient& m) {
  f("key", m.key);
  f("port", m.port);
  AsMilliseconds(f, "lasted_ms", m.lasted);
}

template <typename F>
void Fields(F& f, NodeSamples& m) {
  f("world_size", m.world_size);
  f("workers", m.workers);
  f("clients", m.clients);
}

// Ranks with equal digests.
struct DigestGroup {
  std::vector<int> ranks{};
  StackDigest digest{};
};
struct DigestGroups {
  std::vector<DigestGroup> groups{};
};

template <typename F>
void Fields(F& f, StackDigest& m) {
  f("is_known", m.is_known);
  f("is_exiting", m.is_exiting);
  f("collective", m.collective);
  f("place", m.place);
}

template <typename F>
void Fields(F& f, DigestGroup& m) {
  f("ranks", m.ranks);
  f("digest", m.digest);
}

template <typename F>
void Fields(F& f, DigestGroups& m) {
  f("groups", m.groups);
}

namespace {

constexpr size_t kMaxDigestText = 200;  // characters
constexpr size_t kMaxGroups = 32;       // of a worker
constexpr size_t kMaxClients = 1'000;

// Keeps the groups in operations, then those with most operations, and the connections with the
// latest data.
void LimitLists(NodeSamples& samples, size_t max) {
  for (WorkerSample& worker : samples.workers) {
    if (worker.work && worker.work->connections.size() > max) worker.work->connections.resize(max);
    if (worker.groups.size() <= max) continue;
    worker.has_all_groups = false;
    std::ranges::stable_sort(worker.groups, [](const GroupActivity& a, const GroupActivity& b) {
      return std::pair(a.is_under_way, a.last.number) > std::pair(b.is_under_way, b.last.number);
    });
    worker.groups.resize(max);
  }
}

std::string Bytes(NodeSamples& samples) { return CborOf(cbor::Writer::ToJson(samples)); }

}  // namespace

std::string EncodeHealth(const NodeSamples& samples) {
  NodeSamples copy = samples;
  if (copy.clients.size() > kMaxClients) copy.clients.resize(kMaxClients);
  std::string bytes;
  for (size_t groups = kMaxGroups; groups > 0; groups /= 4) {
    LimitLists(copy, groups);
    bytes = Bytes(copy);
    if (bytes.size() <= kMaxHealthBytes) return bytes;
  }
  copy.clients.clear();
  while (bytes.size() > kMaxHealthBytes && !copy.workers.empty()) {
    copy.workers.resize(copy.workers.size() / 2);
    bytes = Bytes(copy);
  }
  return bytes;
}

Result<NodeSamples> DecodeHealth(std::string_view bytes) {
  if (bytes.size() > kMaxHealthBytes) {
    return Error{ErrorCode::kProtocol, "samples of " + std::to_string(bytes.size()) + " bytes"};
  }
  auto json = ParseCborMap(bytes);
  if (!json) return std::move(json).error();
  return cbor::Read<NodeSamples>(*json);
}

std::string EncodeDigests(const std::vector<RankDigest>& digests) {
  DigestGroups all;
  for (size_t i = 0; i < std::min(digests.size(), kMaxDigestRanks); ++i) {
    StackDigest digest = digests[i].digest;
    digest.collective = OneLine(digest.collective, kMaxDigestText);
    digest.place = OneLine(digest.place, kMaxDigestText);
    auto found = std::ranges::find(all.groups, digest, &DigestGroup::digest);
    if (found == all.groups.end()) found = all.groups.insert(found, {.digest = digest});
    found->ranks.push_back(digests[i].global_rank);
  }
  return CborOf(cbor::Writer::ToJson(all));
}

Result<std::vector<RankDigest>> DecodeDigests(std::string_view bytes) {
  if (bytes.size() > kMaxDigestBytes) {
    return Error{ErrorCode::kProtocol, "stacks of " + std::to_string(bytes.size()) + " bytes"};
  }
  auto json = ParseCborMap(bytes);
  if (!json) return std::move(json).error();
  auto all = cbor::Read<DigestGroups>(*json);
  if (!all) return std::move(all).error();
  std::vector<RankDigest> digests;
  for (const DigestGroup& group : all->groups) {
    for (int rank : group.ranks) {
      if (digests.size() == kMaxDigestRanks) {
        return Error{ErrorCode::kProtocol, "stacks of too many ranks"};
      }
      digests.push_back({rank, group.digest});
    }
  }
  return digests;
}

}  // namespace agent
}  // namespace rankrun
