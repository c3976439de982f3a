#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/trace/trace_reader.h"

namespace rankrun::cli {

// Writes traces in the Trace Event format. A process is a rank, a thread a group: one
// for its collectives, one or more for its messages, so that no two events of a thread
// overlap. Every operation is an event of kind X, with begin and duration.
// Source: "Trace Event Format", the document of Chrome's tracing project.
class TraceJson {
 public:
  using Write = std::function<void(std::string_view)>;
  // Converts a time of the trace that Add has got to nanoseconds since the begin.
  using Since = std::function<int64_t(int64_t)>;

  explicit TraceJson(Write write) : write_(std::move(write)) {}

  void Begin();
  void Add(const Trace& trace, const Since& since);
  // `other` is a JSON object with facts about the job.
  void End(const std::string& other);

 private:
  // Attempt, group (-1: store or RPC), number of the kinds that share threads.
  using Class = std::tuple<int, int, int>;
  struct Lane {
    int thread;
    int64_t end;  // of its last event
  };

  void Event(const std::string& fields);
  void Name(int process, int thread, const std::string& kind, const std::string& name);
  void AddOperation(const Trace& trace, const TracedOperation& operation, int64_t begin,
                    int64_t end);
  int ThreadFor(const Trace& trace, const TracedOperation& operation, int64_t& begin, int64_t& end);

  const Write write_;
  bool has_events_ = false;
  std::map<int, int> threads_;                // by rank: number of threads so far
  std::map<Class, std::vector<Lane>> lanes_;  // of the trace that is added
};

// Returns the text as JSON, with quotation marks. Bytes that are not UTF-8 are replaced.
std::string Quoted(const std::string& text);

// Returns 1234567 as "1234.567".
std::string Microseconds(int64_t nanoseconds);

}  // namespace rankrun::cli
