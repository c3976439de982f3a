#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace rankrun::agent {

constexpr size_t kMaxAnswerBytes = 64 * 1024;  // of one node
constexpr size_t kMaxStacksRanks = 64;         // of one request

// A question or an order of `rankctl` to an agent: one line of JSON, such as
// {"request":"status"}. docs/rankctl.md describes all.
struct InspectRequest {
  enum class Kind {
    kJob,      // which job is it
    kStatus,   // the workers
    kEvents,   // the events after number `after`
    kLogs,     // output of `rank` after the positions `after` and `after_stderr`
    kStop,     // end the job
    kRestart,  // restart all workers
    kDrain,    // let `node` leave the job
    kStacks,   // the stacks of `ranks`
  };
  Kind kind = Kind::kJob;
  bool all_nodes = false;  // asked of all nodes of the job, not of this agent alone
  int rank = -1;
  int attempt = -1;  // to which the positions of kLogs belong; -1: the present one
  uint64_t after = 0;
  uint64_t after_stderr = 0;
  std::string node = {};
  std::vector<int> ranks = {};    // kStacks: kMaxStacksRanks at most
  size_t room = kMaxAnswerBytes;  // bytes of the answer; no field of the line
  bool operator==(const InspectRequest&) const = default;
};

// Returns the time in which the nodes answer; a node that is later counts as silent. Pure.
std::chrono::milliseconds AnswerTimeOf(InspectRequest::Kind kind);

// Returns how many nodes may have a long answer; nothing: all may. Pure.
std::optional<uint32_t> LongAnswersTo(const InspectRequest& request);

// Returns "status".
std::string_view NameOf(InspectRequest::Kind kind);

// Convert a request to a line without its newline, and back. Decoding ignores unknown fields.
// Pure. Errors: kProtocol, one sentence.
std::string EncodeRequest(const InspectRequest& request);
Result<InspectRequest> DecodeRequest(std::string_view line);

}  // namespace rankrun::agent
