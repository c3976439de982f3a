#include "agent/coordination/loss.h"

#include "agent/job/exit_codes.h"
#include "base/format.h"

namespace rankrun::agent {

Cause LossCause(const std::string& text, LostNode on_lost_node) {
  return {.text = text,
          .exit_code = kExitTooFewNodes,
          .is_fatal = on_lost_node == LostNode::kStop,
          .consumes_restart = false};
}

std::string SilenceText(const Hello& hello, Duration node_timeout) {
  return "node " + hello.name + " has been silent for " + FormatSeconds(node_timeout) +
         " (--node-timeout)";
}

std::string GoneText(const Hello& hello, uint16_t port) {
  return "node " + hello.name + " is lost: its rankrun was killed (port " + std::to_string(port) +
         " refuses connections)";
}

std::string GivenUpText(const CoordinatorNode& node) {
  bool was_to_stop = node.work == NodeState::kRunning || node.work == NodeState::kStopping;
  return "node " + node.hello.name + " is given up: it is alive, but has not " +
         (was_to_stop ? "stopped its workers" : "prepared") + " in time";
}

std::string StuckText(const Hello& hello, const NodeAssignment& assignment) {
  const StuckProcess& process = *hello.stuck;
  std::string rank;
  if (process.local_rank >= 0) {
    rank = "rank " + std::to_string(assignment.first_rank + process.local_rank) + ", ";
  }
  return "node " + hello.name + " counts as lost: " + rank + process.what +
         ", does not die of SIGKILL";
}

}  // namespace rankrun::agent
