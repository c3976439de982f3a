#include "agent/report/torch_calls.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "agent/job/environment.h"
#include "agent/report/pickle.h"

namespace rankrun::agent {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kLastOperations = 3;
constexpr size_t kMaxGroups = 16;     // in a report
constexpr size_t kMaxNameBytes = 64;  // of a group or a collective

// A collective or a message in a dump.
struct Entry {
  std::string group;
  std::string what;  // "all_reduce #4", "recv 3<-0"
  int64_t sequence = 0;
  bool is_message = false;
  bool is_done = false;
  Duration ago{};  // since the call
};

// Returns a text without the characters that a terminal must not get.
std::string Plain(const std::string& text) {
  std::string plain = text.substr(0, kMaxNameBytes);
  std::ranges::replace_if(
      plain, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return plain;
}

// Returns the description of a group with its name: "default_pg", "pair (1)".
std::string GroupOf(const PickleValue& entry) {
  const PickleValue* group = entry.Find("process_group", Kind::kList);
  if (group == nullptr || group->items.size() != 2) return "";
  const auto [name, description] = std::pair(group->items[0]->text, group->items[1]->text);
  if (description.empty() || description == "undefined") return Plain(name);
  return Plain(name == "0" ? description : description + " (" + name + ")");
}

std::optional<Entry> ReadEntry(const PickleValue& entry,
                               std::chrono::system_clock::time_point now) {
  const PickleValue* name = entry.Find("profiling_name", Kind::kText);
  const PickleValue* sequence = entry.Find("collective_seq_id", Kind::kInt);
  if (name == nullptr || sequence == nullptr) return std::nullopt;
  const PickleValue* message = entry.Find("is_p2p", Kind::kBool);
  const PickleValue* retired = entry.Find("retired", Kind::kBool);
  const PickleValue* state = entry.Find("state", Kind::kText);
  const PickleValue* created = entry.Find("time_created_ns", Kind::kInt);
  const size_t backend = name->text.find(':');  // "nccl:all_reduce"
  const std::string call = backend == name->text.npos ? name->text : name->text.substr(backend + 1);
  const bool is_message = message != nullptr && message->number != 0;
  Entry found{.group = GroupOf(entry),
              .what = Plain(call) + (is_message ? "" : " #" + std::to_string(sequence->number)),
              .sequence = sequence->number,
              .is_message = is_message,
              .is_done = (retired != nullptr && retired->number != 0) ||
                         (state != nullptr && state->text == "completed")};
  if (created != nullptr) {
    const auto since = now.time_since_epoch() - std::chrono::nanoseconds(created->number);
    found.ago = std::clamp<Duration>(since, Duration::zero(), std::chrono::hours(24 * 365));
  }
  return found;
}

std::vector<Entry> ReadEntries(const PickleValue& root, std::chrono::system_clock::time_point now) {
  std::vector<Entry> entries;
  const PickleValue* listed = root.Find("entries", Kind::kList);
  if (listed == nullptr) return entries;
  for (const PickleValue* item : listed->items) {
    if (auto entry = ReadEntry(*item, now)) entries.push_back(std::move(*entry));
  }
  return entries;
}

// Returns the last collective of each group, and a message that is under way.
std::vector<GroupCall> LastCalls(const std::vector<Entry>& entries) {
  std::map<std::string, GroupCall> last;
  std::optional<GroupCall> message;
  for (const Entry& entry : entries) {
    const GroupCall call{entry.group, entry.what, entry.sequence, entry.is_message, entry.is_done};
    if (entry.is_message) {
      if (!entry.is_done) message = call;
      continue;
    }
    if (!last.contains(entry.group) && last.size() == kMaxGroups) continue;
    GroupCall& newest = last.try_emplace(entry.group, call).first->second;
    if (entry.sequence >= newest.sequence) newest = call;
  }
  std::vector<GroupCall> calls;
  for (auto& [group, call] : last) calls.push_back(std::move(call));
  if (message) calls.push_back(std::move(*message));
  return calls;
}

}  // namespace

std::vector<std::string> TorchDumpFiles(const std::vector<std::string>& environment,
                                        const std::string& prefix, int global_rank) {
  const std::string rank = std::to_string(global_rank);
  for (const char* name : {kTorchDumpVariable, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (auto typed = VariableOf(environment, name)) return {*typed + rank};
  }
  std::vector<std::string> files;
  if (!prefix.empty()) files.push_back(prefix + rank);
  files.push_back("/tmp/nccl_trace_rank_" + rank);
  return files;
}

TorchDump ReadTorchDump(std::string_view bytes, std::chrono::system_clock::time_point now) {
  TorchDump dump;
  auto pickle = Pickle::Read(bytes);
  if (!pickle) return dump;
  const std::vector<Entry> entries = ReadEntries(pickle->root(), now);
  dump.calls = LastCalls(entries);
  const size_t first = entries.size() - std::min(entries.size(), kLastOperations);
  for (const Entry& entry : std::span(entries).subspan(first)) {
    dump.last_operations.push_back({.what = entry.what,
                                    .group = entry.group,
                                    .is_under_way = !entry.is_done,
                                    .has_failed = false,
                                    .ago = entry.ago});
  }
  auto waits = std::ranges::find(entries, false, &Entry::is_done);
  if (waits != entries.end()) {
    dump.activity = {.what = waits->what + " of " + waits->group, .lasted = waits->ago};
  }
  return dump;
}

}  // namespace rankrun::agent
