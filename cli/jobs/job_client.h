#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "agent/inspect/request.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::cli {

// Answer of one node.
struct NodeAnswer {
  std::string node;
  std::string json;  // an object
};

struct JobAnswers {
  std::vector<NodeAnswer> nodes{};
  std::vector<std::string> missing{};  // nodes that have not answered
  std::string note{};                  // why other nodes are missing; empty: they are not
};

// A connection to the socket of a job's agent. Blocks.
// Thread: one at a time.
class JobClient {
 public:
  // Connects to the agent with this pid at `path`.
  // Errors: kNotFound if no process listens there any more; kInvalid if the process belongs to
  // another user; kSystem.
  static Result<JobClient> Connect(const std::string& path, pid_t agent);

  // Whether no other answer is needed once this one is there.
  using IsLast = std::function<bool(const NodeAnswer&)>;

  // Waits for 1 s longer than the nodes may take, or until `is_last`.
  // Errors: kTimeout, "the agent (pid 4711) has not answered for 2.0 s: <what it does>"; kPeerLost
  // if the agent has ended; kInvalid, the error that the agent reports.
  Result<JobAnswers> Ask(const agent::InspectRequest& request, const IsLast& is_last = {});

  pid_t agent() const { return agent_; }

 private:
  JobClient(Fd fd, pid_t agent) : fd_(std::move(fd)), agent_(agent) {}

  Result<std::string> ReadLine(TimePoint deadline, Duration timeout);
  Error Silent(Duration timeout) const;

  Fd fd_;
  pid_t agent_;
  std::string input_;  // not taken yet
};

}  // namespace rankrun::cli
