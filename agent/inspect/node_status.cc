#include "agent/inspect/node_status.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/printable.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxEntries = 65536;

// One table of fields serves both directions.
template <typename F>
void Fields(F& f, GroupActivity& m) {
  f("name", m.name);
  f("size", m.size);
  f("is_under_way", m.is_under_way);
  f("seconds", m.since_entered);
  f("completed", m.completed);
  f("number", m.last.number);
  f("kind", m.last.kind);
  f("dtype", m.last.dtype);
  f("op", m.last.op);
  f("root", m.last.root);
  f("count", m.last.count);
  f("fingerprint", m.last.fingerprint);
}
template <typename F>
void Fields(F& f, StoreWait& m) {
  f("key", m.key);
  f("seconds", m.lasted);
}
template <typename F>
void Fields(F& f, PeerWait& m) {
  f("rank", m.global_rank);
  f("address", m.address);
  f("is_server", m.is_server);
  f("is_guess", m.is_guess);
}
template <typename F>
void Fields(F& f, WaitingClient& m) {
  f("key", m.key);
  f("port", m.port);
  f("seconds", m.lasted);
}
template <typename F>
void Fields(F& f, ProcessFacts& m) {
  f("state", m.state);
  f("wait_channel", m.wait_channel);
  f("call_kind", m.call);
  f("call", m.call_name);
  f("file", m.file);
  f("file_detail", m.file_detail);
  f("tracer", m.tracer);
  f("tracer_name", m.tracer_name);
  f("memory", m.resident_bytes);
  f("io", m.io_bytes);
}
template <typename F>
void Fields(F& f, WorkerSample& m) {
  f("rank", m.global_rank);
  f("local_rank", m.local_rank);
  f("pid", m.pid);
  f("has_ended", m.has_ended);
  f("is_saving", m.is_saving);
  f("cpu_seconds", m.cpu_time);
  f("awaits", m.awaited);
  f("awaited_rank", m.awaited_rank);
  f("awaits_seconds", m.awaited_for);
  f("store_wait", m.store_wait);
  f("peer_wait", m.peer_wait);
  f("dials", m.dials);
  f("store_ports", m.store_ports);
  f("process", m.process);
  f("groups", m.groups);
  f("has_all_groups", m.has_all_groups);
}
template <typename F>
void Fields(F& f, WorkerStatus& m) {
  Fields(f, m.sample);
  f("state", m.state);
  f("is_alive", m.is_alive);
  f("seconds", m.seconds);
  f("doing", m.doing);
  f("doing_seconds", m.doing_seconds);
  f("last_line", m.last_line);
}
template <typename F>
void Fields(F& f, NodeStatus& m) {
  f("job", m.job);
  f("node", m.node);
  f("version", m.version);
  f("program", m.program);
  f("agent", m.agent);
  f("guardian", m.guardian);
  f("phase", m.phase);
  f("attempt", m.attempt);
  f("node_rank", m.node_rank);
  f("nodes", m.nodes);
  f("world_size", m.world_size);
  f("max_restarts", m.max_restarts);
  f("seconds", m.seconds);
  f("attempt_seconds", m.attempt_seconds);
  f("workers", m.workers);
  f("waits", m.waits);
  f("omitted", m.omitted);
  f("store_clients", m.store_clients);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    json_[name] = ToJson(value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (value) json_[name] = ToJson(*value);
  }
  Json Take() { return std::move(json_); }

 private:
  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return value.substr(0, kMaxText);
    } else if constexpr (std::is_same_v<T, Duration>) {
      return std::chrono::duration<double>(value).count();
    } else if constexpr (std::is_same_v<T, char>) {
      return std::string(value != 0, value);
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else {
      Writer writer;
      Fields(writer, value);
      return writer.Take();
    }
  }
  template <typename T>
  static Json ToJson(std::vector<T>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(ToJson(value));
    return array;
  }

  Json json_ = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json), is_valid_(json.is_object()) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    auto found = is_valid_ ? json_.find(name) : json_.end();
    if (!is_valid_ || found == json_.end()) return;  // an older agent
    is_valid_ = Take(*found, value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    auto found = is_valid_ ? json_.find(name) : json_.end();
    if (found == json_.end()) return;
    is_valid_ = Take(*found, value.emplace());
  }
  bool is_valid() const { return is_valid_; }

 private:
  static bool Take(const Json& json, bool& value) {
    if (!json.is_boolean()) return false;
    value = json.get<bool>();
    return true;
  }
  static bool Take(const Json& json, double& value) {
    if (!json.is_number()) return false;
    value = json.get<double>();
    return true;
  }
  template <std::integral T>
  static bool Take(const Json& json, T& value) {
    bool fits = json.is_number_unsigned()
                    ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
    if (fits) value = json.get<T>();
    return fits;
  }
  static bool Take(const Json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = OneLine(json.get<std::string>());
    return true;
  }
  static bool Take(const Json& json, char& value) {
    std::string text;
    if (!Take(json, text) || text.size() > 1) return false;
    value = text.empty() ? '\0' : text[0];
    return true;
  }
  static bool Take(const Json& json, Duration& value) {
    constexpr double kMaxSeconds = 1e9;
    double seconds = 0;
    if (!Take(json, seconds) || seconds < 0 || seconds > kMaxSeconds) return false;
    value = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    return true;
  }
  static bool Take(const Json& json, CallKind& value) {
    int number = -1;
    if (!Take(json, number) || number < 0 || number > static_cast<int>(CallKind::kOther)) {
      return false;
    }
    value = static_cast<CallKind>(number);
    return true;
  }
  template <typename T>
  requires std::is_class_v<T>
  static bool Take(const Json& json, T& value) {
    Reader reader(json);
    Fields(reader, value);
    return reader.is_valid();
  }
  template <typename T>
  static bool Take(const Json& json, std::vector<T>& values) {
    if (!json.is_array() || json.size() > kMaxEntries) return false;
    return std::ranges::all_of(json,
                               [&](const Json& item) { return Take(item, values.emplace_back()); });
  }

  const Json& json_;
  bool is_valid_;
};

std::string Dump(NodeStatus& status) {
  Writer writer;
  Fields(writer, status);
  return writer.Take().dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Removes the groups for which `is_spare` holds. A rank that misses a group is not taken for late.
template <typename F>
void DropGroups(NodeStatus& status, F is_spare) {
  for (WorkerStatus& worker : status.workers) {
    WorkerSample& sample = worker.sample;
    if (std::erase_if(sample.groups, is_spare) > 0) sample.has_all_groups = false;
  }
}

// Keeps the groups in operations, then those with most operations.
void KeepFewGroups(NodeStatus& status) {
  constexpr size_t kFew = 4;
  for (WorkerStatus& worker : status.workers) {
    auto& groups = worker.sample.groups;
    if (groups.size() <= kFew) continue;
    std::ranges::stable_sort(groups, std::greater(), [](const GroupActivity& group) {
      return std::pair(group.is_under_way, group.last.number);
    });
    groups.resize(kFew);
    worker.sample.has_all_groups = false;
  }
}

// Leaves the groups of one rank for each operation in which several wait.
void KeepOneWitness(NodeStatus& status) {
  std::set<std::tuple<std::string, uint64_t, uint8_t, uint64_t>> seen;
  DropGroups(status, [&](const GroupActivity& group) {
    const ActivityRecord& last = group.last;
    return group.is_under_way &&
           !seen.emplace(group.name, last.number, last.kind, last.fingerprint).second;
  });
}

void KeepGroupsUnderWay(NodeStatus& status) {
  DropGroups(status, [](const GroupActivity& group) { return !group.is_under_way; });
}

void KeepNoGroups(NodeStatus& status) {
  DropGroups(status, [](const GroupActivity&) { return true; });
}

// A node of which little is known is better than one that seems silent.
void KeepFewTexts(NodeStatus& status) {
  constexpr size_t kFew = 64;
  status.program.resize(std::min(status.program.size(), kFew));
  status.store_clients.clear();
}

// The steps by which a status that is too long gets shorter, the least harmful first.
constexpr std::array kSteps = {KeepFewGroups, KeepOneWitness, KeepGroupsUnderWay, KeepNoGroups,
                               KeepFewTexts};

}  // namespace

std::string EncodeStatus(const NodeStatus& status, size_t max_bytes) {
  NodeStatus copy = status;
  std::string json = Dump(copy);
  if (json.size() <= max_bytes) return json;
  for (WorkerStatus& worker : copy.workers) worker.last_line.clear();
  for (size_t step = 0; (json = Dump(copy)).size() > max_bytes && step < kSteps.size();) {
    kSteps[step++](copy);
  }
  while ((json = Dump(copy)).size() > max_bytes && !copy.workers.empty()) {
    size_t kept = copy.workers.size() * max_bytes / (json.size() + 1);
    copy.omitted += static_cast<int>(copy.workers.size() - kept);
    copy.workers.resize(kept);
  }
  return json;
}

void ShareStoreWaits(std::vector<NodeStatus>& nodes) {
  std::vector<WaitingClient> clients;
  std::vector<WorkerSample> samples;
  for (const NodeStatus& node : nodes) {
    clients.insert(clients.end(), node.store_clients.begin(), node.store_clients.end());
    for (const WorkerStatus& worker : node.workers) samples.push_back(worker.sample);
  }
  for (WorkerSample& sample : samples) sample.store_wait.reset();
  AssignStoreWaits(clients, samples);
  auto sample = samples.begin();
  for (NodeStatus& node : nodes) {
    for (WorkerStatus& worker : node.workers) worker.sample.store_wait = sample++->store_wait;
  }
}

Result<NodeStatus> DecodeStatus(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  NodeStatus status;
  Reader reader(json);
  Fields(reader, status);
  if (reader.is_valid()) return status;
  return Error{ErrorCode::kProtocol, "a status that this version cannot read"};
}

}  // namespace rankrun::agent
