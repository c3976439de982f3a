#include "cli/store_text.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/printable.h"

namespace rankrun::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownCharacters = 60;  // of a value

void Put(Json& object, const std::string& name, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    object[name] = bytes;
  } else {
    object[name + "_hex"] = Hex(bytes);
  }
}

std::string_view NameOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kIs:
      return "is";
    case ChangeKind::kSet:
      return "set";
    case ChangeKind::kChanged:
      return "changed";
    case ChangeKind::kDeleted:
      return "deleted";
  }
  __builtin_unreachable();
}

// RFC 3339, UTC, to the millisecond.
std::string FormatTime(std::chrono::system_clock::time_point at) {
  using std::chrono::milliseconds;
  auto since = std::chrono::floor<milliseconds>(at.time_since_epoch()).count();
  time_t seconds = static_cast<time_t>(since / 1000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string fraction = std::to_string(since % 1000 + 1000);
  return std::string(text, length) + "." + fraction.substr(1) + "Z";
}

std::string Row(const std::string& name, const std::string& value) {
  constexpr size_t kColumn = 14;
  std::string row = name;
  row.resize(std::max(name.size() + 1, kColumn), ' ');
  return row + value + "\n";
}

uint64_t Number(const Json& stats, const char* name) { return stats.at(name).get<uint64_t>(); }

std::string Count(const Json& stats, const char* name) {
  return std::to_string(Number(stats, name));
}

// "1234 of at most 4294967296"
std::string OfAtMost(const Json& stats, const char* name, const char* limit) {
  return Count(stats, name) + " of at most " + Count(stats, limit);
}

// Returns an object of numbers as text: "SET 3, WAIT 1".
std::string Counts(const Json& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers.items()) {
    text +=
        (text.empty() ? "" : ", ") + Escaped(name) + " " + std::to_string(number.get<uint64_t>());
  }
  return text.empty() ? "none" : text;
}

std::string WaitLine(const Json& wait) {
  std::string peers;
  size_t named = 0;
  for (const Json& peer : wait.at("peers")) {
    peers += (named++ == 0 ? "" : ", ") + Escaped(peer.get<std::string>());
  }
  uint64_t waiters = Number(wait, "waiters");
  if (waiters > named) peers += " and " + std::to_string(waiters - named) + " more";
  return "  " + Escaped(wait.at("key").get<std::string>()) + ": " + peers + "\n";
}

std::string Waits(const Json& stats) {
  std::string text;
  for (const Json& wait : stats.at("waits")) text += WaitLine(wait);
  uint64_t omitted = Number(stats, "waits_omitted");
  if (omitted > 0) text += "  and " + std::to_string(omitted) + " more keys\n";
  return text;
}

std::string Table(const Json& stats) {
  auto uptime = std::chrono::duration<double>(stats.at("uptime_s").get<double>());
  // Clamped, because a wrong number could exceed the range of the clock.
  auto up = std::chrono::duration_cast<Duration>(
      std::clamp(uptime, std::chrono::duration<double>(0), std::chrono::duration<double>(1e9)));
  return Row("server", Escaped(stats.at("server").get<std::string>())) +
         Row("up", FormatSeconds(up)) + Row("keys", Count(stats, "keys")) +
         Row("queues", Count(stats, "queues")) +
         Row("bytes", OfAtMost(stats, "bytes", "largest_bytes")) +
         Row("connections", OfAtMost(stats, "connections", "largest_connections")) +
         Row("traffic bytes", Count(stats, "traffic_bytes")) +
         Row("closed", Counts(stats.at("closed"))) + Row("requests", Counts(stats.at("requests"))) +
         Row("waiters", Count(stats, "waiters")) + Waits(stats);
}

Error BadStats(const std::string& why) {
  return {ErrorCode::kProtocol, "the store's statistics cannot be read: " + why};
}

// Both forms of the statistics, made together so that --json and the text
// reject the same replies.
struct Shown {
  std::string text;
  std::string json;
};

Result<Shown> Show(const std::string& json) {
  try {
    // rankrun's statistics are never nested deeper; a deeper reply could
    // exhaust the stack.
    constexpr int kDeepest = 8;
    Json stats =
        Json::parse(json, [](int depth, Json::parse_event_t, Json&) { return depth < kDeepest; });
    return Shown{.text = Table(stats), .json = stats.dump() + "\n"};
  } catch (const Json::exception& error) {
    return BadStats(error.what());
  }
}

constexpr const char* kNothingElse =
    "this server reports nothing else; a server of rankrun also reports its limits, connections, "
    "requests and waiting clients";

}  // namespace

std::string KeyLine(std::string_view key, const std::optional<std::string>& value) {
  std::string line = Escaped(key);
  if (value) {
    line += "\t" + std::to_string(value->size()) + "\t" + EscapedAndCut(*value, kShownCharacters);
  }
  return line + "\n";
}

std::string KeyJson(std::string_view key, const std::optional<std::string>& value) {
  Json object;
  Put(object, "key", key);
  if (value) {
    object["bytes"] = value->size();
    Put(object, "value", *value);
  }
  return object.dump();
}

std::string ChangeLine(const Change& change) {
  std::string line =
      FormatTime(change.at) + "\t" + std::string(NameOf(change.kind)) + "\t" + Escaped(change.key);
  if (change.kind != ChangeKind::kDeleted) line += "\t" + Escaped(change.value);
  return line + "\n";
}

std::string ChangeJson(const Change& change) {
  Json object;
  object["time"] = FormatTime(change.at);
  object["event"] = NameOf(change.kind);
  Put(object, "key", change.key);
  if (change.kind != ChangeKind::kDeleted) Put(object, "value", change.value);
  return object.dump() + "\n";
}

Result<std::string> StatsText(const std::string& json) {
  auto shown = Show(json);
  if (!shown) return std::move(shown).error();
  return std::move(shown->text);
}

Result<std::string> StatsJson(const std::string& json) {
  auto shown = Show(json);
  if (!shown) return std::move(shown).error();
  return std::move(shown->json);
}

std::string PlainStatsText(const PlainStats& stats) {
  std::string bytes = stats.bytes ? std::to_string(*stats.bytes) + " of keys and values"
                                  : "unknown: the server cannot list its keys";
  return Row("keys", std::to_string(stats.keys)) + Row("bytes", bytes) + kNothingElse + "\n";
}

std::string PlainStatsJson(const PlainStats& stats) {
  Json object;
  object["server"] = nullptr;
  object["keys"] = stats.keys;
  object["bytes"] = stats.bytes ? Json(*stats.bytes) : Json(nullptr);
  return object.dump() + "\n";
}

}  // namespace rankrun::cli
