#include "tests/sim/verdict/trial.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/job_report.h"
#include "agent/nodes/merged_report.h"
#include "agent/report/verdict.h"
#include "tests/sim/verdict/round.h"
#include "tests/sim/verdict/scene.h"

namespace rankrun::sim {
namespace {

using agent::AttemptRecord;
using agent::WorkerRecord;

constexpr int kOrdersOfArrival = 4;

// Judges the ends on a node and encodes its part, as its agent does.
std::string MakePart(const SceneNode& node, size_t number) {
  AttemptRecord record;
  record.ended = node.ended;
  record.workers = node.workers;
  record.cause = agent::ChooseCause(record.workers, record.ended);
  agent::Judge(record);
  for (WorkerRecord& worker : record.workers) worker.node = "n" + std::to_string(number);
  return agent::Encode(agent::MemberMessage(
      agent::Report{record.attempt, agent::EncodeReport(record, agent::kMaxPartBytes)}));
}

class Trial {
 public:
  Trial(uint64_t seed, bool is_traced)
      : dice_(seed), scene_(MakeScene(dice_)), outcome_(DecideOnRound(scene_, dice_)) {
    if (is_traced) Print();
  }

  TrialResult Run() {
    std::vector<std::string> parts;
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      const bool is_lost = scene_.loss != Loss::kNone && i == scene_.lost_node;
      if (!is_lost) parts.push_back(MakePart(scene_.nodes[i], i));
    }
    for (int i = 0; i < kOrdersOfArrival; ++i) {
      Check(Receive(Merge(parts)));
      std::rotate(parts.begin(), parts.begin() + 1, parts.end());
      if (i == 1) std::ranges::reverse(parts);
    }
    return {violation_, scene_.name};
  }

 private:
  // Returns the message in which the node of the coordinator sends the report.
  std::string Merge(const std::vector<std::string>& parts) {
    std::vector<AttemptRecord> records;
    for (const std::string& bytes : parts) {
      auto message = agent::DecodeMemberMessage(bytes);
      const auto* report = message ? std::get_if<agent::Report>(&*message) : nullptr;
      if (report == nullptr) return Fail("a part is no report"), "";
      if (report->record.size() > agent::kMaxPartBytes) Fail("a part is too large");
      auto record = agent::DecodeReport(report->record);
      if (!record) return Fail(record.error().message), "";
      records.push_back(std::move(*record));
    }
    AttemptRecord merged = agent::ReportOnRound(std::move(records), outcome_);
    return agent::Encode(agent::CoordinatorMessage(
        agent::JobReport{merged.attempt, agent::EncodeReport(merged, agent::kMaxReportBytes)}));
  }

  std::optional<AttemptRecord> Receive(const std::string& bytes) {
    auto message = agent::DecodeCoordinatorMessage(bytes);
    const auto* report = message ? std::get_if<agent::JobReport>(&*message) : nullptr;
    if (report == nullptr) return Fail("no report arrives"), std::nullopt;
    if (report->record.size() > agent::kMaxReportBytes) Fail("the report is too large");
    auto record = agent::DecodeReport(report->record);
    if (!record) return Fail(record.error().message), std::nullopt;
    return std::move(*record);
  }

  void Check(const std::optional<AttemptRecord>& report) {
    if (!report) return;
    if (scene_.loss != Loss::kNone) return CheckLoss(*report);
    const WorkerRecord& cause = report->workers[report->cause];
    if (cause.global_rank != scene_.culprit) {
      return Fail("the culprit is rank " + std::to_string(scene_.culprit) + " (" + scene_.name +
                  "), but the report names rank " + std::to_string(cause.global_rank) + ": " +
                  agent::CauseInWords(cause));
    }
    if (!report->own_cause.empty())
      Fail("a worker failed, but the report names " + report->own_cause);
    const WorkerRecord& culprit = Culprit();
    const std::string& tail = agent::OutputOfErrors(culprit);
    const std::string& shown = agent::OutputOfErrors(cause);
    // A report keeps the end of a long log.
    if (!tail.ends_with(shown)) Fail("the cause's last lines are of another worker");
    if (shown.empty() != tail.empty()) Fail("the cause's last lines are missing");
    const bool ends = !report->restarts;
    if (ends && report->exit_code != agent::ExitCodeOf(culprit)) {
      Fail("the exit code is " + std::to_string(report->exit_code.value_or(-1)));
    }
  }

  void CheckLoss(const AttemptRecord& report) {
    const std::string name = "node n" + std::to_string(scene_.lost_node);
    if (report.own_cause.find(name) == std::string::npos) {
      Fail(name + " is lost, but the report names \"" + report.own_cause + "\" and " +
           agent::CauseInWords(report.workers[report.cause]));
    }
  }

  const WorkerRecord& Culprit() const {
    for (const SceneNode& node : scene_.nodes) {
      for (const WorkerRecord& worker : node.workers) {
        if (worker.global_rank == scene_.culprit) return worker;
      }
    }
    return scene_.nodes.front().workers.front();
  }

  void Fail(std::string text) {
    if (violation_.empty()) violation_ = std::move(text);
  }

  void Print() const {
    std::printf("culprit: rank %d %s\n", scene_.culprit, scene_.name.c_str());
    std::printf("the coordinator's cause: %s\n", outcome_.cause.c_str());
    for (const SceneNode& node : scene_.nodes) {
      std::printf("node n%td\n", &node - scene_.nodes.data());
      for (size_t i : node.ended) {
        const WorkerRecord& worker = node.workers[i];
        const agent::Ending ending = agent::EndingOf(worker);
        const std::string& tail = agent::OutputOfErrors(worker);
        const size_t line = tail.rfind('\n', tail.size() < 2 ? 0 : tail.size() - 2) + 1;
        std::printf("  rank %d: %s (kind %d, lost %d) %s\n", worker.global_rank,
                    agent::HowItEnded(worker).c_str(), static_cast<int>(ending.kind),
                    ending.lost_rank, tail.substr(std::min(line, tail.size())).c_str());
      }
    }
  }

  Dice dice_;
  const Scene scene_;
  const agent::RoundOutcome outcome_;
  std::string violation_;
};

}  // namespace

TrialResult Try(uint64_t seed, bool is_traced) { return Trial(seed, is_traced).Run(); }

std::string TrialCommand(uint64_t seed) {
  return "sim --verdict --seed " + std::to_string(seed) + " --trace";
}

}  // namespace rankrun::sim
