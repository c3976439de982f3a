#include "agent/control_codec.h"

#include <array>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

// --- Which fields there are: one table for both directions ---

template <typename F>
void Fields(F& f, Cause& m) {
  f("text", m.text);
  f("exit_code", m.exit_code);
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

// Of a variant's alternatives, in their order.
constexpr std::array kMemberNames = {"hello",       "prepared", "failed", "done", "stopped",
                                     "finish_seen", "leave",    "close",  "beat"};
constexpr std::array kCoordinatorNames = {"waiting", "refusal", "prepare", "go",
                                          "stop",    "finish",  "verdict", "beat"};
static_assert(kMemberNames.size() == std::variant_size_v<MemberMessage>);
static_assert(kCoordinatorNames.size() == std::variant_size_v<CoordinatorMessage>);

// --- Out ---

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

  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Writer writer;
      Fields(writer, value);
      return std::move(writer.json_);
    }
  }
  template <typename T>
  static Json ToJson(std::vector<T>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(ToJson(value));
    return array;
  }

 private:
  Json json_ = Json::object();
};

std::string Bytes(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

template <typename Variant, size_t kCount>
std::string EncodeMessage(Variant message, const std::array<const char*, kCount>& names) {
  Json json = std::visit([](auto& m) { return Writer::ToJson(m); }, message);
  json["kind"] = names[message.index()];
  return Bytes(json);
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

// Looks for what the library's parser would not survive: its recursion is as
// deep as the value, and it throws at a length that no memory holds.
class Censor : public nlohmann::json_sax<Json> {
 public:
  explicit Censor(size_t most_items) : most_items_(most_items) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(size_t items) override { return Enter(items); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t items) override { return Enter(items); }
  bool end_array() override { return Leave(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool Enter(size_t items) {
    constexpr int kDeepest = 8;
    bool is_counted = items != static_cast<size_t>(-1);
    return ++depth_ <= kDeepest && !(is_counted && items > most_items_);
  }
  bool Leave() {
    depth_ -= 1;
    return true;
  }

  const size_t most_items_;
  int depth_ = 0;
};

Result<Json> Parse(std::string_view bytes) {
  Censor censor(bytes.size());
  bool is_sound = Json::sax_parse(bytes, &censor, Json::input_format_t::cbor);
  if (!is_sound) return Error{ErrorCode::kProtocol, "a message that is not a CBOR map"};
  Json json = Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return Error{ErrorCode::kProtocol, "a message that is not a CBOR map"};
  }
  return json;
}

template <typename T>
Result<T> Read(const Json& json) {
  T value{};
  Reader reader(json);
  Fields(reader, value);
  if (!reader.error().empty()) return Error{ErrorCode::kProtocol, reader.error()};
  return value;
}

template <typename Variant, size_t kIndex, size_t kCount>
Result<Variant> ReadAs(const std::string& kind, const Json& json,
                       const std::array<const char*, kCount>& names) {
  if constexpr (kIndex == kCount) {
    return Error{ErrorCode::kProtocol, "a message of an unknown kind"};
  } else {
    if (kind != names[kIndex]) return ReadAs<Variant, kIndex + 1>(kind, json, names);
    auto message = Read<std::variant_alternative_t<kIndex, Variant>>(json);
    if (!message) return std::move(message).error().In(kind);
    return Variant(std::move(*message));
  }
}

template <typename Variant, size_t kCount>
Result<Variant> Decode(std::string_view bytes, const std::array<const char*, kCount>& names) {
  auto json = Parse(bytes);
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
  return Bytes(Writer::ToJson(copy));
}

Result<MemberMessage> DecodeMemberMessage(std::string_view bytes) {
  return Decode<MemberMessage>(bytes, kMemberNames);
}

Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view bytes) {
  return Decode<CoordinatorMessage>(bytes, kCoordinatorNames);
}

Result<CoordinatorRecord> DecodeCoordinatorRecord(std::string_view bytes) {
  auto json = Parse(bytes);
  if (!json) return std::move(json).error();
  return Read<CoordinatorRecord>(*json);
}

}  // namespace rankrun::agent
