#include "cli/trace_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/status/operation_names.h"

namespace rankrun::cli {
namespace {

constexpr uint8_t kSend = 10;
constexpr uint8_t kRecv = 11;

bool IsMessage(const TracedOperation& operation) {
  return operation.kind == kSend || operation.kind == kRecv;
}
bool IsWaitForStore(const TracedOperation& operation) {
  return operation.kind >= trace_kind::kStoreGet && operation.kind <= trace_kind::kStoreQueuePop;
}
bool IsRpc(const TracedOperation& operation) {
  return operation.kind == trace_kind::kRpcCall || operation.kind == trace_kind::kRpcMethod;
}
bool IsBarrier(const TracedOperation& operation) {
  constexpr uint8_t kBarrier = 9;
  return operation.kind == kBarrier || operation.kind == trace_kind::kMonitoredBarrier;
}
bool IsReduction(const TracedOperation& operation) {
  enum : uint8_t { kAllReduce = 1, kReduce = 2, kReduceScatter = 7 };
  return operation.kind == kAllReduce || operation.kind == kReduce ||
         operation.kind == kReduceScatter;
}

std::string Field(const char* name, const std::string& value) {
  return ",\"" + std::string(name) + "\":" + value;
}
std::string Field(const char* name, uint64_t value) { return Field(name, std::to_string(value)); }

std::string ArgumentsOf(const Trace& trace, const TracedOperation& operation) {
  std::string text = Field("bytes", operation.bytes);
  if (operation.group >= 0) {
    text += Field("group", Quoted(trace.groups[static_cast<size_t>(operation.group)].name));
  }
  if (operation.number > 0) text += Field("number", operation.number);
  if (!IsWaitForStore(operation) && !IsBarrier(operation) && !IsRpc(operation)) {
    text += Field("count", operation.count);
    text += Field("dtype", Quoted(NameOfDType(operation.dtype)));
  }
  if (IsReduction(operation)) text += Field("op", Quoted(NameOfReduceOp(operation.op)));
  if (operation.peer >= 0) text += Field("peer", static_cast<uint64_t>(operation.peer));
  if (IsMessage(operation)) text += Field("tag", operation.tag);
  if (IsWaitForStore(operation)) text += Field("key", Quoted(operation.key));
  if (IsRpc(operation)) text += Field("method", Quoted(operation.key));
  if (!operation.is_finished) text += Field("result", "\"under way\"");
  if (operation.has_failed) text += Field("result", "\"failed\"");
  return "{" + text.substr(1) + "}";
}

// Returns a number for operations that share threads.
int LanesOf(const TracedOperation& operation) {
  if (IsRpc(operation)) return operation.kind;
  return IsMessage(operation) ? 1 : 0;
}

const char* CategoryOf(const TracedOperation& operation) {
  if (IsMessage(operation)) return "message";
  if (IsWaitForStore(operation)) return "store";
  if (IsRpc(operation)) return "rpc";
  return IsBarrier(operation) ? "barrier" : "collective";
}

}  // namespace

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Microseconds(int64_t nanoseconds) {
  const std::string rest = std::to_string(1000 + std::abs(nanoseconds) % 1000);
  return (nanoseconds < 0 ? "-" : "") + std::to_string(std::abs(nanoseconds) / 1000) + "." +
         rest.substr(1);
}

void TraceJson::Begin() { write_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["); }

void TraceJson::End(const std::string& other) { write_("\n],\"otherData\":" + other + "}\n"); }

void TraceJson::Event(const std::string& fields) {
  write_(has_events_ ? ",\n{" : "\n{");
  write_(fields + "}");
  has_events_ = true;
}

void TraceJson::Name(int process, int thread, const std::string& kind, const std::string& name) {
  Event("\"ph\":\"M\",\"pid\":" + std::to_string(process) + Field("tid", std::to_string(thread)) +
        Field("name", Quoted(kind)) + Field("args", "{\"name\":" + Quoted(name) + "}"));
}

void TraceJson::Add(const Trace& trace, const Since& since) {
  lanes_.clear();
  if (threads_.emplace(trace.rank, 0).second) {
    Name(trace.rank, 0, "process_name", "rank " + std::to_string(trace.rank) + " on " + trace.host);
    Event("\"ph\":\"M\",\"pid\":" + std::to_string(trace.rank) +
          ",\"tid\":0,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" +
          std::to_string(trace.rank) + "}");
  }
  for (const TracedOperation& operation : trace.operations) {
    AddOperation(trace, operation, since(operation.begin), since(operation.end));
  }
}

void TraceJson::AddOperation(const Trace& trace, const TracedOperation& operation, int64_t begin,
                             int64_t end) {
  const int thread = ThreadFor(trace, operation, begin, end);
  Event("\"ph\":\"X\",\"pid\":" + std::to_string(trace.rank) +
        Field("tid", std::to_string(thread)) + Field("ts", Microseconds(begin)) +
        Field("dur", Microseconds(end - begin)) +
        Field("name", Quoted(NameOfTraced(operation.kind))) +
        Field("cat", Quoted(CategoryOf(operation))) + Field("args", ArgumentsOf(trace, operation)));
}

// Returns the first thread of the operation's class that is free. Makes one if there is
// none. Moves times by as much as they may be wrong, so that operations that followed
// each other do not overlap.
int TraceJson::ThreadFor(const Trace& trace, const TracedOperation& operation, int64_t& begin,
                         int64_t& end) {
  constexpr int64_t kTimeError = 1'000;  // nanoseconds
  auto& lanes = lanes_[{trace.attempt, operation.group, LanesOf(operation)}];
  auto free =
      std::ranges::find_if(lanes, [&](const Lane& lane) { return lane.end <= begin + kTimeError; });
  if (free != lanes.end()) {
    begin = std::max(begin, free->end);
    end = std::max(begin, end);
    free->end = end;
    return free->thread;
  }
  const int thread = ++threads_[trace.rank];
  lanes.push_back({.thread = thread, .end = end});
  std::string name = IsRpc(operation) ? NameOfTraced(operation.kind) : "store";
  if (operation.group >= 0) name = trace.groups[static_cast<size_t>(operation.group)].name;
  if (IsMessage(operation)) name += ", messages";
  if (lanes.size() > 1) name += " " + std::to_string(lanes.size());
  if (trace.attempt > 0) name += " (attempt " + std::to_string(trace.attempt) + ")";
  Name(trace.rank, thread, "thread_name", name);
  return thread;
}

}  // namespace rankrun::cli
