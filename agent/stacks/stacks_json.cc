#include "agent/stacks/stacks_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxKernelFrames = 32;

void AddText(Json& json, const char* name, const std::string& text) {
  if (!text.empty()) json[name] = text.substr(0, kMaxStackText);
}

Json FramesJson(const std::vector<StackFrame>& frames) {
  Json list = Json::array();
  for (const StackFrame& frame : frames) {
    if (list.size() == kMaxStackFrames) break;
    Json json = Json::object();
    AddText(json, "function", frame.function);
    AddText(json, "file", frame.file);
    if (frame.line > 0) json["line"] = frame.line;
    AddText(json, "module", frame.module);
    AddText(json, "address", frame.address);
    list.push_back(std::move(json));
  }
  return list;
}

Json ThreadJson(const ThreadStack& thread) {
  Json json;
  json["tid"] = thread.tid;
  AddText(json, "name", thread.name);
  json["state"] = std::string(1, thread.state);
  AddText(json, "wait_channel", thread.wait_channel);
  AddText(json, "system_call", thread.system_call);
  AddText(json, "system_call_file", thread.system_call_file);
  if (!thread.python.empty()) json["python"] = FramesJson(thread.python);
  if (!thread.native.empty()) json["native"] = FramesJson(thread.native);
  if (!thread.kernel.empty()) json["kernel"] = thread.kernel;
  return json;
}

std::string TextOf(const Json& json, const char* name) {
  auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return "";
  return found->get<std::string>().substr(0, kMaxStackText);
}

template <typename Number>
Number NumberOf(const Json& json, const char* name) {
  auto found = json.find(name);
  const bool is_number = found != json.end() && found->is_number_integer();
  return is_number ? found->get<Number>() : Number{0};
}

char StateIn(const Json& json) {
  const std::string state = TextOf(json, "state");
  return state.empty() ? '?' : state[0];
}

// Returns the entries of a list that are objects, `max` at most.
template <typename Value>
std::vector<Value> ListOf(const Json& json, const char* name, size_t max,
                          Value (*read)(const Json&)) {
  std::vector<Value> values;
  auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return values;
  for (const Json& entry : *found) {
    if (values.size() == max) break;
    if (entry.is_object()) values.push_back(read(entry));
  }
  return values;
}

StackFrame ReadFrame(const Json& json) {
  return {.function = TextOf(json, "function"),
          .file = TextOf(json, "file"),
          .line = std::max(0, NumberOf<int>(json, "line")),
          .module = TextOf(json, "module"),
          .address = TextOf(json, "address")};
}

ThreadStack ReadThread(const Json& json) {
  ThreadStack thread{.tid = NumberOf<pid_t>(json, "tid"),
                     .name = TextOf(json, "name"),
                     .state = StateIn(json),
                     .wait_channel = TextOf(json, "wait_channel"),
                     .system_call = TextOf(json, "system_call"),
                     .system_call_file = TextOf(json, "system_call_file"),
                     .native = ListOf(json, "native", kMaxStackFrames, ReadFrame),
                     .python = ListOf(json, "python", kMaxStackFrames, ReadFrame)};
  auto kernel = json.find("kernel");
  if (kernel == json.end() || !kernel->is_array()) return thread;
  for (const Json& entry : *kernel) {
    if (!entry.is_string() || thread.kernel.size() == kMaxKernelFrames) break;
    thread.kernel.push_back(entry.get<std::string>().substr(0, kMaxStackText));
  }
  return thread;
}

}  // namespace

std::string FormatStacks(const ProcessStacks& stacks) {
  Json json;
  json["pid"] = stacks.pid;
  AddText(json, "name", stacks.name);
  json["state"] = std::string(1, stacks.state);
  AddText(json, "note", stacks.note);
  AddText(json, "python_note", stacks.python_note);
  AddText(json, "interpreter", stacks.interpreter);
  json["stopped_us"] = stacks.stopped_us;
  json["threads"] = Json::array();
  for (const ThreadStack& thread : stacks.threads) {
    if (json["threads"].size() == kMaxStackThreads) break;
    json["threads"].push_back(ThreadJson(thread));
  }
  constexpr int kOneLine = -1;
  return json.dump(kOneLine, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ProcessStacks> ParseStacks(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{ErrorCode::kProtocol, "stacks that are no JSON object"};
  ProcessStacks stacks{.pid = NumberOf<pid_t>(json, "pid"),
                       .name = TextOf(json, "name"),
                       .state = StateIn(json),
                       .note = TextOf(json, "note"),
                       .python_note = TextOf(json, "python_note"),
                       .interpreter = TextOf(json, "interpreter"),
                       .stopped_us = NumberOf<int64_t>(json, "stopped_us"),
                       .threads = ListOf(json, "threads", kMaxStackThreads, ReadThread)};
  if (stacks.pid <= 0) return Error{ErrorCode::kProtocol, "stacks without a pid"};
  return stacks;
}

}  // namespace rankrun::agent
