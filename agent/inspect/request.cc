#include "agent/inspect/request.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <nlohmann/json.hpp>
#include <utility>

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;
using Kind = InspectRequest::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 8> kNames = {{
    {Kind::kJob, "job"},
    {Kind::kStatus, "status"},
    {Kind::kEvents, "events"},
    {Kind::kLogs, "logs"},
    {Kind::kStop, "stop"},
    {Kind::kRestart, "restart"},
    {Kind::kDrain, "drain"},
    {Kind::kStacks, "stacks"},
}};

Error Wrong(std::string_view what) {
  return {ErrorCode::kProtocol, "wrong request: " + std::string(what)};
}

std::string ListOfNames() {
  std::string list;
  for (const auto& [kind, name] : kNames) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

// Reads an optional field. Returns false if it has another form.
bool Read(const Json& json, const char* name, bool& value) {
  auto found = json.find(name);
  if (found == json.end()) return true;
  if (!found->is_boolean()) return false;
  value = found->get<bool>();
  return true;
}
bool Read(const Json& json, const char* name, std::string& value) {
  auto found = json.find(name);
  if (found == json.end()) return true;
  if (!found->is_string()) return false;
  value = found->get<std::string>();
  return true;
}
template <std::integral T>
bool Read(const Json& json, const char* name, T& value) {
  auto found = json.find(name);
  if (found == json.end()) return true;
  if (!found->is_number_unsigned() || !std::in_range<T>(found->get<uint64_t>())) return false;
  value = static_cast<T>(found->get<uint64_t>());
  return true;
}

bool Read(const Json& json, const char* name, std::vector<int>& values) {
  auto found = json.find(name);
  if (found == json.end()) return true;
  if (!found->is_array() || found->size() > kMaxStacksRanks) return false;
  return std::ranges::all_of(*found, [&](const Json& entry) {
    if (!entry.is_number_unsigned() || !std::in_range<int>(entry.get<uint64_t>())) return false;
    values.push_back(entry.get<int>());
    return true;
  });
}

}  // namespace

// To read the stacks of many processes takes seconds on a busy machine.
std::chrono::milliseconds AnswerTimeOf(Kind kind) {
  return std::chrono::seconds(kind == Kind::kStacks ? 5 : 1);
}

std::optional<uint32_t> LongAnswersTo(const InspectRequest& request) {
  if (request.kind == Kind::kStacks) return static_cast<uint32_t>(request.ranks.size());
  if (request.kind == Kind::kLogs || request.kind == Kind::kDrain) return 1;
  return std::nullopt;
}

std::string_view NameOf(Kind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "";
}

std::string EncodeRequest(const InspectRequest& request) {
  Json json{{"request", NameOf(request.kind)}};
  if (request.all_nodes) json["all_nodes"] = true;
  if (request.rank >= 0) json["rank"] = request.rank;
  if (request.attempt >= 0) json["attempt"] = request.attempt;
  if (request.after > 0) json["after"] = request.after;
  if (request.after_stderr > 0) json["after_stderr"] = request.after_stderr;
  if (!request.node.empty()) json["node"] = request.node;
  if (!request.ranks.empty()) json["ranks"] = request.ranks;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<InspectRequest> DecodeRequest(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Wrong("want one JSON object per line");
  InspectRequest request;
  std::string name;
  if (!Read(json, "request", name)) return Wrong("want a text as \"request\"");
  auto known =
      std::ranges::find_if(kNames, [&](const auto& entry) { return entry.second == name; });
  if (known == kNames.end()) return Wrong("\"request\" is one of " + ListOfNames());
  request.kind = known->first;
  if (!Read(json, "all_nodes", request.all_nodes)) return Wrong("want a boolean as \"all_nodes\"");
  if (!Read(json, "rank", request.rank)) return Wrong("want a rank as \"rank\"");
  if (!Read(json, "attempt", request.attempt)) return Wrong("want a number as \"attempt\"");
  if (!Read(json, "after", request.after) || !Read(json, "after_stderr", request.after_stderr)) {
    return Wrong("want a number as \"after\" and \"after_stderr\"");
  }
  if (!Read(json, "node", request.node)) return Wrong("want a text as \"node\"");
  if (!Read(json, "ranks", request.ranks)) {
    return Wrong("want up to " + std::to_string(kMaxStacksRanks) + " ranks as \"ranks\"");
  }
  if (request.kind == Kind::kStacks && request.ranks.empty()) {
    return Wrong("\"stacks\" needs \"ranks\"");
  }
  if (request.kind == Kind::kLogs && request.rank < 0) return Wrong("\"logs\" needs a \"rank\"");
  if (request.kind == Kind::kDrain && request.node.empty()) {
    return Wrong("\"drain\" needs a \"node\"");
  }
  return request;
}

}  // namespace rankrun::agent
