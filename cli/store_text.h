#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::cli {

// The output of `rankctl store list`, `watch` and `stats`: text for people, with
// keys and values escaped, or JSON. In JSON, a key or value is a string; if it is
// not UTF-8, it is hexadecimal, under "key_hex" or "value_hex". Pure. Lines end
// in a newline.

// Returns "key", or with a value "key<TAB>bytes<TAB>value". Cuts a long value.
std::string KeyLine(std::string_view key, const std::optional<std::string>& value);
// Returns a JSON object without a newline.
std::string KeyJson(std::string_view key, const std::optional<std::string>& value);

// An event of `watch`.
enum class ChangeKind {
  kIs,       // the key has this value when the watch begins
  kSet,      // the key has been created
  kChanged,  // the key has another value
  kDeleted,
};

struct Change {
  std::chrono::system_clock::time_point at;
  ChangeKind kind;
  std::string key;
  std::string value;  // empty for kDeleted
};

// Returns "2026-11-21T10:00:00.123Z<TAB>set<TAB>key<TAB>value".
std::string ChangeLine(const Change& change);
std::string ChangeJson(const Change& change);

// Returns the statistics of a server of rankrun as lines. `json` is its reply.
// Errors: kProtocol if `json` has another form.
Result<std::string> StatsText(const std::string& json);
// Returns the same as one line of JSON.
Result<std::string> StatsJson(const std::string& json);

// Statistics that rankctl collects from other servers.
struct PlainStats {
  int64_t keys = 0;
  std::optional<uint64_t> bytes = {};  // of keys and values; unknown if they cannot be listed
};
std::string PlainStatsText(const PlainStats& stats);
std::string PlainStatsJson(const PlainStats& stats);

}  // namespace rankrun::cli
