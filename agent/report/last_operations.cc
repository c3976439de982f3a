#include "agent/report/last_operations.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "agent/report/event.h"
#include "base/status/activity.h"
#include "base/status/operation_names.h"
#include "base/status/status_page.h"

namespace rankrun::agent {
namespace {

constexpr size_t kLastOperations = 3;

Duration Between(const WorkerOperations& operations, uint64_t from, uint64_t to) {
  // The numbers come from the worker's memory.
  return std::max(Duration::zero(), operations.clock.Since(from) - operations.clock.Since(to));
}

std::string Time(const WorkerOperations& operations, uint64_t ticks) {
  const auto ago = operations.clock.Since(ticks);
  return events::FormatTime(operations.now -
                            std::chrono::duration_cast<std::chrono::system_clock::duration>(ago));
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Field(const char* name, const std::string& value) {
  return "\"" + std::string(name) + "\":" + value;
}
std::string Number(const char* name, uint64_t value) {
  return "," + Field(name, std::to_string(value));
}
// For texts without characters that JSON escapes.
std::string Text(const char* name, const std::string& value) {
  return "," + Field(name, "\"" + value + "\"");
}

template <typename T>
std::string Formatted(const char* format, T value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

const char* NameOf(FlightState state) {
  switch (state) {
    case FlightState::kUnderWay:
      return "under way";
    case FlightState::kSucceeded:
      return "succeeded";
    case FlightState::kFailed:
      return "failed";
  }
  return "unknown";
}

bool IsMessage(uint8_t kind) {
  const std::string name = NameOfCollective(kind);
  return name == "Send" || name == "Recv";
}

std::string FormatOperation(const WorkerOperations& all, const FlightOperation& operation) {
  const ActivityRecord& what = operation.what;
  const uint64_t end = operation.end == 0 ? all.moment : operation.end;
  const std::chrono::duration<double> lasted = Between(all, operation.begin, end);
  std::string text = "   {" + Field("operation", Quoted(NameOfCollective(what.kind)));
  if (what.number != 0) text += Number("number", what.number);
  text += Number("count", what.count) + Text("dtype", NameOfDType(what.dtype));
  if (IsReduction(what.kind)) text += Text("op", NameOfReduceOp(what.op));
  if (what.root >= 0) text += Number("peer", static_cast<uint64_t>(what.root));
  if (IsMessage(what.kind)) text += Number("tag", operation.tag);
  if (what.fingerprint != 0) {
    text += Text("fingerprint", Formatted("%016" PRIx64, what.fingerprint));
  }
  return text + Text("state", NameOf(operation.state)) + Text("began", Time(all, operation.begin)) +
         "," + Field("seconds", Formatted("%.9f", lasted.count())) + "}";
}

std::string FormatGroup(const WorkerOperations& all, const FlightHistory& history) {
  std::string text = "  {" + Field("name", Quoted(history.group)) + "," +
                     Field("size", std::to_string(history.size)) + "," +
                     Field("destroyed", history.is_live ? "false" : "true") +
                     Number("begun", history.begun) + "," + Field("operations", "[\n");
  for (const FlightOperation& operation : history.operations) {
    text += FormatOperation(all, operation);
    text += &operation == &history.operations.back() ? "\n" : ",\n";
  }
  return text + "  ]}";
}

}  // namespace

WorkerOperations ReadOperations(const StatusPage& page, uint64_t moment) {
  WorkerOperations operations{.histories = ReadFlightHistories(page),
                              .moment = moment,
                              .clock = page.tick_clock(),
                              .now = std::chrono::system_clock::now()};
  CutAfter(moment, operations.histories);
  return operations;
}

std::vector<LastOperation> LastOperationsOf(const WorkerOperations& operations) {
  struct Entry {
    const FlightOperation* operation;
    const FlightHistory* history;
  };
  std::vector<Entry> last;
  for (const FlightHistory& history : operations.histories) {
    const size_t count = std::min(kLastOperations, history.operations.size());
    for (auto it = history.operations.end() - static_cast<ptrdiff_t>(count);
         it != history.operations.end(); ++it) {
      last.push_back({&*it, &history});
    }
  }
  std::ranges::stable_sort(last, {}, [](const Entry& entry) { return entry.operation->begin; });
  if (last.size() > kLastOperations) last.erase(last.begin(), last.end() - kLastOperations);
  std::vector<LastOperation> texts;
  for (const auto& [operation, history] : last) {
    const bool is_under_way = operation->state == FlightState::kUnderWay;
    texts.push_back({.what = DescribeOperation(operation->what),
                     .group = history->group,
                     .is_under_way = is_under_way,
                     .has_failed = operation->state == FlightState::kFailed,
                     .ago = Between(operations, is_under_way ? operation->begin : operation->end,
                                    operations.moment)});
  }
  return texts;
}

std::string FormatOperations(const WorkerOperations& operations, const WorkerRecord& worker,
                             int attempt) {
  std::string text = "{" + Field("rank", std::to_string(worker.global_rank)) + "," +
                     Field("local_rank", std::to_string(worker.local_rank)) + "," +
                     Field("attempt", std::to_string(attempt)) + "," +
                     Field("pid", std::to_string(worker.pid)) + "," +
                     Field("time", "\"" + Time(operations, operations.moment) + "\"") + "," +
                     Field("groups", "[\n");
  for (const FlightHistory& history : operations.histories) {
    text += FormatGroup(operations, history);
    text += &history == &operations.histories.back() ? "\n" : ",\n";
  }
  return text + " ]}\n";
}

}  // namespace rankrun::agent
