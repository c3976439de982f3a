#include "cli/jobs/job_orders.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "cli/jobs/job_question.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using agent::InspectRequest;
using agent::NodeStatus;
using Json = nlohmann::ordered_json;

// Prints what the agents have done. Fails if none has done it.
int ShowOutcome(const CommandLine& line, const JobAnswers& answers) {
  NameMissing(answers);
  for (const NodeAnswer& answer : answers.nodes) {
    Json json = Json::parse(answer.json, nullptr, false);
    if (auto error = json.find("error"); error != json.end() && error->is_string()) {
      return Fail(error->get<std::string>(), kExitNo);
    }
    auto done = json.find("done");
    if (done == json.end() || !done->is_string()) continue;
    if (line.flags.Has("json")) return Print(answer.json + "\n");
    return Print(OneLine(done->get<std::string>()) + "\n");
  }
  return Fail("no node has done it", kExitNo);
}

int Order(const CommandLine& line, InspectRequest::Kind kind) {
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  auto answers = job->client.Ask({.kind = kind});
  if (!answers) return FailJob(answers.error());
  return ShowOutcome(line, *answers);
}

// Returns the node that `name` means: its name, or its node rank.
// Errors: kNotFound, kInvalid if there are several.
Result<NodeStatus> ChooseNode(const std::vector<NodeStatus>& nodes, const std::string& name) {
  std::vector<NodeStatus> named;
  std::string all;
  std::string ranks;
  for (const NodeStatus& node : nodes) {
    std::string rank = std::to_string(node.node_rank);
    all += (all.empty() ? "" : ", ") + node.node + " (" + rank + ")";
    if (node.node_rank >= 0 && rank == name) return node;
    if (node.node != name) continue;
    named.push_back(node);
    ranks += (ranks.empty() ? "" : ", ") + rank;
  }
  if (named.size() == 1) return named[0];
  if (named.empty()) {
    return Error{ErrorCode::kNotFound, "no node \"" + name + "\" in this job, which has " + all};
  }
  return Error{ErrorCode::kInvalid,
               "several nodes are named " + name + "; give one of the node ranks " + ranks};
}

}  // namespace

int RunStop(const CommandLine& line) { return Order(line, InspectRequest::Kind::kStop); }

int RunRestart(const CommandLine& line) { return Order(line, InspectRequest::Kind::kRestart); }

int RunDrain(const CommandLine& line) {
  auto job = JobOf(line);
  if (!job) return FailJob(job.error());
  auto nodes = AskStatus(*job);
  if (!nodes) return FailJob(nodes.error());
  auto node = ChooseNode(*nodes, line.operands[0]);
  if (!node) return FailJob(node.error());
  auto answers = job->client.Ask({.kind = InspectRequest::Kind::kDrain,
                                  .all_nodes = true,
                                  .rank = node->node_rank,
                                  .node = node->node});
  if (!answers) return FailJob(answers.error());
  return ShowOutcome(line, *answers);
}

}  // namespace rankrun::cli
