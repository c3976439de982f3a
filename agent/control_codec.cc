#include "agent/control_codec.h"

#include <array>
#include <utility>

#include "agent/cbor_fields.h"

namespace rankrun::agent {

// --- Which fields there are ---

template <typename F>
void Fields(F& f, Cause& m) {
  f("text", m.text);
  f("exit_code", m.exit_code);
  f("rank", m.rank);
  f("by_itself", m.by_itself);
  f("is_hopeless", m.is_hopeless);
  f("charges_budget", m.charges_budget);
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
}
template <typename F>
void Fields(F& f, Prepared& m) {
  f("round", m.round);
  f("store_port", m.store_port);
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
  f("record", m.record);
}
template <typename F>
void Fields(F& f, Go& m) {
  f("round", m.round);
  f("store_addresses", m.store_addresses);
  f("store_port", m.store_port);
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
  f("record", m.record);
}
template <typename F>
void Fields(F& f, JobReport& m) {
  f("attempt", m.attempt);
  f("record", m.record);
}
template <typename F>
void Fields(F& f, Verdict& m) {
  f("exit_code", m.exit_code);
  f("text", m.text);
}
template <typename F>
void Fields(F& f, RestartHistory& m) {
  f("restarts", m.restarts);
  f("row", m.row);
}
template <typename F>
void Fields(F& f, Seat& m) {
  f("node", m.node);
  f("incarnation", m.incarnation);
  f("name", m.name);
  f("slots", m.slots);
  f("first_rank", m.first_rank);
}
template <typename F>
void Fields(F& f, CoordinatorRecord& m) {
  f("round", m.round);
  f("attempts", m.attempts);
  f("is_granted", m.is_granted);
  f("has_finished", m.has_finished);
  f("has_lost", m.has_lost);
  f("cause", m.cause);
  f("history", m.history);
  f("seats", m.seats);
  f("verdict", m.verdict);
}

constexpr Work LastOf(Work) { return Work::kFinished; }

namespace {

using cbor::Json;

// Of a variant's alternatives, in their order.
constexpr std::array kMemberNames = {"hello",       "prepared", "failed", "done", "stopped",
                                     "finish_seen", "leave",    "close",  "beat", "report"};
constexpr std::array kCoordinatorNames = {"waiting", "refusal", "prepare", "go",        "stop",
                                          "finish",  "verdict", "beat",    "job_report"};
static_assert(kMemberNames.size() == std::variant_size_v<MemberMessage>);
static_assert(kCoordinatorNames.size() == std::variant_size_v<CoordinatorMessage>);

// --- Out ---

template <typename Variant, size_t kCount>
std::string EncodeMessage(Variant message, const std::array<const char*, kCount>& names) {
  Json json = std::visit([](auto& m) { return cbor::Writer::ToJson(m); }, message);
  json["kind"] = names[message.index()];
  return cbor::Bytes(json);
}

// --- In ---

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) Reject("a map", "message");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    auto found = json_.is_object() ? json_.find(name) : json_.end();
    if (found == json_.end()) return Reject("a value", name);
    Take(*found, name, value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (!json_.is_object() || !json_.contains(name)) return;
    Take(json_.at(name), name, value.emplace());
  }

  const std::string& error() const { return error_; }

 private:
  void Reject(const char* want, const char* name) {
    if (error_.empty()) error_ = std::string("want ") + want + " as \"" + name + "\"";
  }

  void Take(const Json& json, const char* name, bool& value) {
    if (!json.is_boolean()) return Reject("true or false", name);
    value = json.get<bool>();
  }
  template <std::integral T>
  void Take(const Json& json, const char* name, T& value) {
    bool fits = json.is_number_unsigned()
                    ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
    if (!fits) return Reject("a number in its range", name);
    value = json.get<T>();
  }
  void Take(const Json& json, const char* name, std::string& value) {
    if (!json.is_string()) return Reject("a text", name);
    value = json.get<std::string>();
  }
  void Take(const Json& json, const char* name, Work& value) {
    int number = -1;
    Take(json, name, number);
    if (number < 0 || number > static_cast<int>(Work::kFinished)) {
      return Reject("a kind of work", name);
    }
    value = static_cast<Work>(number);
  }
  template <typename T>
  void Take(const Json& json, const char* name, std::vector<T>& values) {
    if (!json.is_array()) return Reject("a list", name);
    for (const Json& item : json) Take(item, name, values.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void Take(const Json& json, const char*, T& value) {
    Reader reader(json);
    Fields(reader, value);
    if (error_.empty()) error_ = reader.error();
  }

  const Json& json_;
  std::string error_;
};

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
  auto json = cbor::Parse(bytes);
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
  return cbor::Bytes(cbor::Writer::ToJson(copy));
}

Result<MemberMessage> DecodeMemberMessage(std::string_view bytes) {
  return Decode<MemberMessage>(bytes, kMemberNames);
}

Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view bytes) {
  return Decode<CoordinatorMessage>(bytes, kCoordinatorNames);
}

Result<CoordinatorRecord> DecodeCoordinatorRecord(std::string_view bytes) {
  auto json = cbor::Parse(bytes);
  if (!json) return std::move(json).error();
  return cbor::Read<CoordinatorRecord>(*json);
}

}  // namespace rankrun::agent
