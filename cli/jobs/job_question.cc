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

std::vector<std::string> MissingOf(const JobAnswers& answers) {
  std::vector<std::string> lines;
  std::string nodes;
  for (const std::string& node : answers.missing) nodes += (nodes.empty() ? "" : ", ") + node;
  if (!nodes.empty()) lines.push_back("no answer from " + nodes);
  if (!answers.note.empty()) lines.push_back("only this node has answered: " + answers.note);
  return lines;
}

void NameMissing(const JobAnswers& answers) {
  for (const std::string& line : MissingOf(answers)) Fail(line, kExitNo);
}

Result<JobAnswers> AskAgain(FoundJob& job, const InspectRequest& request,
                            const JobClient::IsLast& is_last) {
  auto answers = job.client.Ask(request, is_last);
  bool has_lost = !answers && answers.error().code == ErrorCode::kPeerLost;
  return has_lost && FindAgain(job) ? job.client.Ask(request, is_last) : std::move(answers);
}

Result<std::vector<agent::NodeStatus>> AskStatus(FoundJob& job) {
  auto answers = AskAgain(job, {.kind = InspectRequest::Kind::kStatus, .all_nodes = true});
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
  if (nodes.size() > 1) ShareStoreWaits(nodes);
  NameMissing(*answers);
  return nodes;
}

std::optional<int> RankOf(const std::string& text) {
  auto rank = ParseNumber<int>(text);
  return rank && *rank >= 0 ? rank : std::nullopt;
}

}  // namespace rankrun::cli
