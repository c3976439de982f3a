#include "cli/jobs/job_question.h"

#include <utility>

#include "base/parse_number.h"
#include "cli/output.h"

namespace rankrun::cli {

using agent::InspectRequest;

Result<FoundJob> JobOf(const CommandLine& line) {
  return FindJob(line.flags.Text("job").value_or(""));
}

int FailJob(const Error& error) { return Fail(error.message, kExitNo); }

void NameMissing(const JobAnswers& answers) {
  std::string nodes;
  for (const std::string& node : answers.missing) nodes += (nodes.empty() ? "" : ", ") + node;
  if (!nodes.empty()) Fail("no answer from " + nodes, kExitNo);
  if (!answers.note.empty()) Fail("only this node has answered: " + answers.note, kExitNo);
}

Result<std::vector<agent::NodeStatus>> AskStatus(JobClient& client) {
  auto answers = client.Ask({.kind = InspectRequest::Kind::kStatus, .all_nodes = true});
  if (!answers) return std::move(answers).error();
  std::vector<agent::NodeStatus> nodes;
  for (const NodeAnswer& answer : answers->nodes) {
    auto status = agent::DecodeStatus(answer.json);
    if (status) {
      nodes.push_back(*std::move(status));
    } else {
      answers->missing.push_back(answer.node);
    }
  }
  NameMissing(*answers);
  return nodes;
}

std::optional<int> RankOf(const std::string& text) {
  auto rank = ParseNumber<int>(text);
  return rank && *rank >= 0 ? rank : std::nullopt;
}

}  // namespace rankrun::cli
  if (nodes.size() > 1) ShareStoreWaits(nodes);
