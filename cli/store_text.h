#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::cli {

// How `rankctl store list`, `watch` and `stats` show what they find: text for
// people, in which keys and values are escaped, or JSON. In JSON a key or value
// is a string; if it is no UTF-8, it is hexadecimal, under "key_hex" or
// "value_hex". Pure. Lines end in a newline.

// "key", or with a value "key<TAB>bytes<TAB>value", the value cut.
std::string KeyLine(std::string_view key, const std::optional<std::string>& value);
// Without a newline.
std::string KeyJson(std::string_view key, const std::optional<std::string>& value);

// What `watch` has seen of a key.
enum class ChangeKind {
  kIs,       // has this value when the watch begins
  kSet,      // has come into existence
  kChanged,  // has another value
  kDeleted,
};

struct Change {
  std::chrono::system_clock::time_point at;
  ChangeKind kind;
  std::string key;
  std::string value;  // empty for kDeleted
};

// "2026-11-21T10:00:00.123Z<TAB>set<TAB>key<TAB>value"
std::string ChangeLine(const Change& change);
std::string ChangeJson(const Change& change);

// The statistics of a rankrun server, which `json` is, as lines.
// Errors: kProtocol if it is none.
Result<std::string> StatsText(const std::string& json);
// The same as one line of JSON.
Result<std::string> StatsJson(const std::string& json);

// What can be known of another server.
struct PlainStats {
  int64_t keys = 0;
  std::optional<uint64_t> bytes = {};  // of keys and values; unknown if they cannot be listed
};
std::string PlainStatsText(const PlainStats& stats);
std::string PlainStatsJson(const PlainStats& stats);

}  // namespace rankrun::cli
