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
// Limits, because any program may have written a dump.
constexpr size_t kMaxEntries = 100'000;
constexpr size_t kMaxItems = 128;  // keys and values of an entry

// A collective or a message in a dump.
struct Entry {
  std::string group = {};
  bool is_known = false;  // its ranks are known
  std::string what;       // "all_reduce #4", "recv 3<-0"
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

// Returns the global ranks of a group: "[0, 1]"; empty if they are unknown, or too many.
std::string RanksOf(const PickleValue& root, const std::string& name) {
  const PickleValue* groups = root.Find("pg_config", Kind::kDict);
  const PickleValue* group = groups != nullptr ? groups->Find(name) : nullptr;
  const PickleValue* ranks = group != nullptr ? group->Find("ranks", Kind::kText) : nullptr;
  const bool is_known = ranks != nullptr && ranks->text.size() > std::string_view("[]").size() &&
                        ranks->text.size() <= kMaxNameBytes;
  return is_known ? Plain(ranks->text) : "";
}

// Notes the group of an entry: "default_pg", "pair (1) of ranks [0, 1]". Several groups may have
// the same name, so only that of all ranks is known without its ranks.
void NoteGroup(const PickleValue& root, const PickleValue& entry, Entry& found) {
  const PickleValue* group = entry.Find("process_group", Kind::kList);
  if (group == nullptr || group->items.size() != 2) return;
  const std::string& name = group->items[0]->text;
  const std::string& description = group->items[1]->text;
  const bool is_described = !description.empty() && description != "undefined";
  if (name == "0") {
    found.group = is_described ? Plain(description) : name;
    found.is_known = true;
    return;
  }
  found.group = Plain(is_described ? description + " (" + name + ")" : name);
  const std::string ranks = RanksOf(root, name);
  found.is_known = !ranks.empty();
  if (found.is_known) found.group += " of ranks " + ranks;
}

Duration Since(int64_t created_ns, std::chrono::system_clock::time_point now) {
  const int64_t now_ns = std::chrono::nanoseconds(now.time_since_epoch()).count();
  const bool is_possible = created_ns > 0 && created_ns <= now_ns;
  return std::chrono::nanoseconds(is_possible ? now_ns - created_ns : 0);
}

std::optional<Entry> ReadEntry(const PickleValue& root, const PickleValue& entry,
                               std::chrono::system_clock::time_point now) {
  if (entry.items.size() > kMaxItems) return std::nullopt;
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
  Entry found{.what = Plain(call) + (is_message ? "" : " #" + std::to_string(sequence->number)),
              .sequence = sequence->number,
              .is_message = is_message,
              .is_done = (retired != nullptr && retired->number != 0) ||
                         (state != nullptr && state->text == "completed")};
  NoteGroup(root, entry, found);
  if (created != nullptr) found.ago = Since(created->number, now);
  return found;
}

std::vector<Entry> ReadEntries(const PickleValue& root, std::chrono::system_clock::time_point now) {
  std::vector<Entry> entries;
  const PickleValue* listed = root.Find("entries", Kind::kList);
  if (listed == nullptr || listed->items.size() > kMaxEntries) return entries;
  for (const PickleValue* item : listed->items) {
    if (auto entry = ReadEntry(root, *item, now)) entries.push_back(std::move(*entry));
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
    if (!entry.is_known && entry.is_done) continue;  // compared with nothing
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
  return prefix.empty() ? std::vector<std::string>{} : std::vector{prefix + rank};
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
