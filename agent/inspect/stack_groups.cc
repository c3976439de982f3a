#include "agent/inspect/stack_groups.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "agent/stacks/stack_text.h"
#include "agent/stacks/stacks_json.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNoRoom =
    "its stack had no room in the answer of its node; ask for fewer ranks";
constexpr size_t kMaxRanks = 4096;  // of a group from another node

// Returns the text without the number of a socket or a pipe: "socket:[7]" has one.
std::string WithoutNumber(const std::string& file) {
  return file.ends_with(']') ? file.substr(0, file.find('[')) : file;
}

// Appends texts so that no other texts give the same result.
void Append(std::string& key, std::initializer_list<std::string_view> texts) {
  for (std::string_view text : texts) key.append(text).push_back('\0');
}

void Append(std::string& key, const std::vector<StackFrame>& frames) {
  for (const StackFrame& frame : frames) {
    Append(key,
           {frame.function, frame.file, std::to_string(frame.line), frame.module, frame.address});
  }
  key.push_back('\1');
}

// Returns a text that equal stacks have in common. The kernel's function in which a thread waits is
// another one for a moment after each look.
std::string KeyOf(const StackGroup& group) {
  const ProcessStacks& stacks = group.stacks;
  std::string key;
  Append(key, {std::to_string(group.omitted_threads),
               std::to_string(group.omitted_frames),
               stacks.name,
               {&stacks.state, 1},
               stacks.note,
               stacks.python_note,
               stacks.interpreter});
  for (const ThreadStack& thread : stacks.threads) {
    Append(key, {thread.name,
                 {&thread.state, 1},
                 thread.system_call,
                 WithoutNumber(thread.system_call_file)});
    Append(key, thread.native);
    Append(key, thread.python);
  }
  return key;
}

int FirstRank(const StackGroup& group) {
  return group.ranks.empty() ? -1 : group.ranks.front().rank;
}

// Leaves the native frames that a user sees; those below are the interpreter's.
void DropInterpreter(StackGroup& group) {
  for (ThreadStack& thread : group.stacks.threads) {
    if (thread.python.empty()) continue;
    thread.native.resize(MergedFrames(group.stacks, thread).size() - thread.python.size());
  }
}

// Counts of a group before it is cut.
struct Counts {
  size_t omitted_threads;
  size_t omitted_frames;
  std::vector<size_t> frames;  // by thread
};

size_t FramesOf(const ThreadStack& thread) { return thread.native.size() + thread.python.size(); }

Counts CountsOf(const StackGroup& group) {
  Counts counts{group.omitted_threads, group.omitted_frames, {}};
  for (const ThreadStack& thread : group.stacks.threads) counts.frames.push_back(FramesOf(thread));
  return counts;
}

struct Limit {
  size_t threads;
  size_t frames;
};
constexpr std::array<Limit, 9> kLimits = {
    {{128, 128}, {64, 64}, {32, 64}, {16, 48}, {8, 48}, {4, 48}, {1, 48}, {1, 16}, {1, 5}}};

// Omitted frames are those of the threads that stay, whatever an earlier limit has left of others.
void Cut(StackGroup& group, const Counts& before, Limit limit) {
  auto& threads = group.stacks.threads;
  threads.resize(std::min(threads.size(), limit.threads));
  group.omitted_threads = before.omitted_threads + before.frames.size() - threads.size();
  group.omitted_frames = before.omitted_frames;
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].native.resize(std::min(threads[i].native.size(), limit.frames));
    threads[i].python.resize(std::min(threads[i].python.size(), limit.frames));
    group.omitted_frames += before.frames[i] - FramesOf(threads[i]);
  }
}

// A frame in JSON has more bytes than that.
constexpr size_t kMinFrameBytes = 12;

size_t FramesIn(const std::vector<StackGroup>& groups) {
  size_t frames = 0;
  for (const StackGroup& group : groups) {
    for (const ThreadStack& thread : group.stacks.threads) frames += FramesOf(thread);
  }
  return frames;
}

std::string EntryOf(const StackGroup& group) {
  Json json{{"ranks", Json::array()}, {"pids", Json::array()}};
  for (const RankProcess& process : group.ranks) {
    json["ranks"].push_back(process.rank);
    json["pids"].push_back(process.pid);
  }
  if (group.omitted_threads > 0) json["omitted_threads"] = group.omitted_threads;
  if (group.omitted_frames > 0) json["omitted_frames"] = group.omitted_frames;
  std::string entry = json.dump();
  ProcessStacks stacks = group.stacks;
  stacks.pid = std::max(stacks.pid, 1);  // "pids" has the right one
  std::string text = FormatStacks(stacks);
  text.pop_back();  // its newline
  return entry.insert(entry.size() - 1, ",\"stacks\":" + text);
}

std::string Dump(std::span<const StackGroup> groups, const StackGroup* last = nullptr) {
  std::string text = "{\"groups\":[";
  for (const StackGroup& group : groups) text += EntryOf(group) + ",";
  if (last != nullptr) text += EntryOf(*last) + ",";
  if (text.ends_with(',')) text.pop_back();
  return text + "]}";
}

// Returns the first groups, as many as fit, and one of all ranks that have no room.
std::string DumpSome(std::vector<StackGroup> groups, size_t max_bytes) {
  // Those without stacks need little room.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const StackGroup& group) { return group.stacks.threads.empty(); });
  std::vector<size_t> sizes{Dump({}).size()};  // of the first groups
  for (const StackGroup& group : groups) sizes.push_back(sizes.back() + EntryOf(group).size() + 1);
  StackGroup rest{.stacks = {.note = kNoRoom}};
  for (size_t kept = groups.size(); kept-- > 0;) {
    const auto& ranks = groups[kept].ranks;
    rest.ranks.insert(rest.ranks.end(), ranks.begin(), ranks.end());
    if (sizes[kept] + EntryOf(rest).size() > max_bytes) continue;
    std::ranges::sort(rest.ranks, {}, &RankProcess::rank);
    return Dump(std::span(groups).first(kept), &rest);
  }
  return R"({"error":"no room for stacks"})";
}

size_t CountIn(const Json& json, const char* name) {
  auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<size_t>() : 0;
}

bool IsRank(const Json& json) {
  return json.is_number_unsigned() && std::in_range<int>(json.get<uint64_t>());
}

Result<StackGroup> ReadGroup(const Json& json) {
  const Error wrong{ErrorCode::kProtocol, "stacks that this version cannot read"};
  if (!json.is_object()) return wrong;
  const Json ranks = json.value("ranks", Json());
  const Json pids = json.value("pids", Json());
  const bool has_form = ranks.is_array() && pids.is_array() && ranks.size() == pids.size() &&
                        !ranks.empty() && ranks.size() <= kMaxRanks &&
                        std::ranges::all_of(ranks, IsRank) && std::ranges::all_of(pids, IsRank);
  if (!has_form) return wrong;
  StackGroup group{.omitted_threads = CountIn(json, "omitted_threads"),
                   .omitted_frames = CountIn(json, "omitted_frames")};
  for (size_t i = 0; i < ranks.size(); ++i) {
    group.ranks.push_back({.rank = ranks[i].get<int>(), .pid = pids[i].get<pid_t>()});
  }
  auto stacks = ParseStacks(json.value("stacks", Json()).dump());
  if (!stacks) return std::move(stacks).error();
  group.stacks = *std::move(stacks);
  group.stacks.pid = group.ranks.front().pid;
  return group;
}

std::string Counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

std::vector<StackGroup> MergeStackGroups(std::vector<StackGroup> groups) {
  std::ranges::stable_sort(groups, {}, FirstRank);
  std::vector<StackGroup> merged;
  std::map<std::string, size_t> places;  // in `merged`, by key
  for (StackGroup& group : groups) {
    auto [place, is_new] = places.emplace(KeyOf(group), merged.size());
    if (is_new) {
      merged.push_back(std::move(group));
      continue;
    }
    auto& ranks = merged[place->second].ranks;
    ranks.insert(ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  for (StackGroup& group : merged) std::ranges::stable_sort(group.ranks, {}, &RankProcess::rank);
  return merged;
}

std::string EncodeStackGroups(std::vector<StackGroup> groups, size_t max_bytes) {
  groups = MergeStackGroups(std::move(groups));
  auto fits = [&](std::string& text) {
    if (FramesIn(groups) * kMinFrameBytes > max_bytes) return false;
    text = Dump(groups);
    return text.size() <= max_bytes;
  };
  std::string text;
  if (fits(text)) return text;
  std::ranges::for_each(groups, DropInterpreter);
  std::vector<Counts> before;
  for (const StackGroup& group : groups) before.push_back(CountsOf(group));
  for (const Limit& limit : kLimits) {
    if (fits(text)) return text;
    for (size_t i = 0; i < groups.size(); ++i) Cut(groups[i], before[i], limit);
  }
  return fits(text) ? text : DumpSome(std::move(groups), max_bytes);
}

Result<std::vector<StackGroup>> DecodeStackGroups(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{ErrorCode::kProtocol, "stacks that are no JSON object"};
  auto error = json.find("error");
  if (error != json.end() && error->is_string()) {
    return Error{ErrorCode::kInvalid, OneLine(error->get<std::string>())};
  }
  auto list = json.find("groups");
  if (list == json.end() || !list->is_array() || list->size() > kMaxRanks) {
    return Error{ErrorCode::kProtocol, "stacks without groups"};
  }
  std::vector<StackGroup> groups;
  for (const Json& entry : *list) {
    auto group = ReadGroup(entry);
    if (!group) return std::move(group).error();
    groups.push_back(*std::move(group));
  }
  return groups;
}

std::string OmittedInWords(const StackGroup& group) {
  std::string text;
  if (group.omitted_threads > 0) text = Counted(group.omitted_threads, "thread");
  if (group.omitted_frames > 0) {
    text += (text.empty() ? "" : " and ") + Counted(group.omitted_frames, "outer frame");
  }
  return text.empty() ? "" : text + " had no room in the answer";
}

}  // namespace rankrun::agent
