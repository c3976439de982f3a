#include "cli/jobs/job_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "agent/health/hang_watch.h"
#include "agent/health/stack_waits.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/roll_call.h"
#include "cli/jobs/text_table.h"

namespace rankrun::cli {
namespace {

using agent::NodeStatus;
using agent::WorkerSample;
using agent::WorkerStatus;

constexpr size_t kMinText = 12;     // columns of a text that is cut
constexpr size_t kMaxIdWidth = 40;  // of a job or a node
constexpr size_t kMaxDoing = 60;    // of the last but one column

double SecondsOf(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string Percent(double share) {
  return std::to_string(std::max(0L, std::lround(share * 100))) + "%";
}

std::string PidOf(const WorkerSample& sample) {
  return sample.pid == 0 ? "-" : std::to_string(sample.pid);
}

std::string DoingOf(const WorkerStatus& worker) {
  std::string text = worker.doing;
  if (!text.empty() && worker.is_alive) {
    text += ", " + ShortTime(worker.doing_seconds);
  }
  if (worker.sample.is_saving) text = text.empty() ? "saving" : "saving; " + text;
  if (text.empty() && worker.sample.store_wait) {
    text = "waiting for key " + worker.sample.store_wait->key + " of the store, " +
           ShortTime(SecondsOf(worker.sample.store_wait->lasted));
  }
  if (!text.empty() || !worker.sample.process || !worker.is_alive) return text;
  if (worker.stacks && worker.stacks->dial != agent::Dial::kNone) {
    return "dialling " + worker.stacks->address;
  }
  if (!worker.sample.dials.empty()) return "dialling " + worker.sample.dials.front();
  if (worker.stacks && !worker.stacks->call.empty()) return "in " + worker.stacks->call;
  if (worker.sample.peer_wait && !worker.sample.peer_wait->is_guess) {
    return "waiting for rank " + std::to_string(worker.sample.peer_wait->global_rank) + ", at " +
           worker.sample.peer_wait->address;
  }
  const agent::ProcessFacts& facts = *worker.sample.process;
  if (facts.call_name.empty()) return "";
  return facts.call_name + (facts.file.empty() ? "" : " of " + facts.file) +
         (facts.file_detail.empty() ? "" : ", " + facts.file_detail);
}

std::string HeadOf(const std::vector<NodeStatus>& nodes) {
  // A node that is in the round knows more than one that waits.
  auto best = std::ranges::max_element(nodes, {}, [](const NodeStatus& node) {
    return std::pair(node.node_rank >= 0, node.attempt);
  });
  if (best == nodes.end()) return "no node has answered";
  std::string text = "job " + best->job + ": " + best->phase;
  if (best->attempt > 0) text += ", attempt " + std::to_string(best->attempt);
  text += ", " + std::to_string(best->world_size) + (best->world_size == 1 ? " rank" : " ranks");
  if (nodes.size() > 1) text += " on " + std::to_string(best->nodes) + " nodes";
  return text + ", for " + ShortTime(best->seconds) + ": " + best->program;
}

double ShareOf(const NodeStatus& node, const WorkerStatus& worker, const CpuTimes& before,
               double now) {
  double used = SecondsOf(worker.sample.cpu_time);
  auto found = before.seconds.find({node.node, worker.sample.pid});
  if (found == before.seconds.end() || now <= before.at) {
    return worker.seconds > 0 ? used / worker.seconds : 0;
  }
  return (used - found->second) / (now - before.at);
}

TextTable::Row RowOf(const NodeStatus& node, const WorkerStatus& worker, const CpuTimes& before,
                     double now) {
  bool lives = worker.is_alive;
  uint64_t memory = worker.sample.process ? worker.sample.process->resident_bytes : 0;
  return {std::to_string(worker.sample.global_rank),
          node.node,
          PidOf(worker.sample),
          worker.state,
          ShortTime(worker.seconds),
          lives ? Percent(ShareOf(node, worker, before, now)) : "-",
          lives ? ShortBytes(memory) : "-",
          DoingOf(worker),
          worker.last_line};
}

// Workers of all nodes by their ranks.
std::vector<WorkerStatus> WorkersOf(const std::vector<NodeStatus>& nodes) {
  std::vector<WorkerStatus> workers;
  for (const NodeStatus& node : nodes) {
    for (const WorkerStatus& worker : node.workers) {
      workers.push_back(worker);
      if (nodes.size() > 1) workers.back().sample.node = node.node;
    }
  }
  std::ranges::sort(workers, {}, [](const auto& worker) { return worker.sample.global_rank; });
  return workers;
}

std::vector<WorkerSample> SamplesOf(const std::vector<WorkerStatus>& workers) {
  std::vector<WorkerSample> samples;
  for (const WorkerStatus& worker : workers) samples.push_back(worker.sample);
  return samples;
}

// Returns which ranks wait for which others, with the texts of the agent's own notices.
std::vector<std::string> WaitsOf(const std::vector<WorkerStatus>& first,
                                 const std::vector<WorkerStatus>& second, double apart,
                                 double attempt_seconds) {
  using Seconds = std::chrono::duration<double>;
  auto at = [](double seconds) {
    return TimePoint(std::chrono::duration_cast<Duration>(Seconds(seconds)));
  };
  agent::HangWatch watch({.notice = std::chrono::milliseconds(100)});
  watch.BeginAttempt(at(0));
  // The first look is for the counters only: no rank has waited for long in it.
  std::vector<WorkerSample> counters = SamplesOf(first);
  for (WorkerSample& sample : counters) {
    for (GroupActivity& group : sample.groups) group.is_under_way = false;
    sample.awaited.clear();
    if (sample.store_wait) sample.store_wait->lasted = Duration::zero();
  }
  double now = std::max(attempt_seconds, apart);
  watch.Look(std::move(counters), at(now - apart));
  return watch.Look(SamplesOf(second), at(now)).notices;
}

agent::RecentWork WorkOf(const std::vector<WorkerStatus>& first, const WorkerStatus& worker,
                         double apart) {
  for (const WorkerStatus& earlier : first) {
    if (earlier.sample.pid != worker.sample.pid || earlier.sample.node != worker.sample.node) {
      continue;
    }
    double used = SecondsOf(worker.sample.cpu_time - earlier.sample.cpu_time);
    return {.cpu_share = apart > 0 ? used / apart : 0};
  }
  return {};
}

// Ranks in the same state, such as "is stopped (SIGSTOP), in AllReduce #12 of world".
struct SameState {
  std::string of_one;
  std::string of_several;
  std::vector<int> ranks;
};

SameState StateOf(const std::vector<WorkerStatus>& first, const WorkerStatus& worker,
                  double apart) {
  SameState state{
      .of_one = worker.state, .of_several = worker.state, .ranks = {worker.sample.global_rank}};
  if (!worker.is_alive) return state;
  agent::Condition condition = ConditionOf(worker.sample, WorkOf(first, worker, apart));
  if (condition != agent::Condition::kUnknown) {
    state.of_one = ConditionInWords(worker.sample, condition);
    state.of_several = ConditionInWords(worker.sample, condition, 2);
  }
  std::string doing = worker.doing;
  if (doing.empty() && worker.sample.store_wait) {
    doing = "for key " + worker.sample.store_wait->key + " of the store";
  }
  if (doing.empty() && worker.stacks && !worker.stacks->call.empty()) {
    doing = "in " + worker.stacks->call;
  }
  if (doing.empty()) return state;
  state.of_one += ", " + doing;
  state.of_several += ", " + doing;
  return state;
}

double LongestAttempt(const std::vector<NodeStatus>& nodes) {
  double seconds = 0;
  for (const NodeStatus& node : nodes) seconds = std::max(seconds, node.attempt_seconds);
  return seconds;
}

// Returns the waits that only stacks and connections show.
std::vector<std::string> HiddenWaitsOf(const std::vector<WorkerStatus>& first,
                                       const std::vector<WorkerStatus>& workers, double apart) {
  std::vector<agent::RankDigest> digests;
  std::map<int, std::string> doing;
  for (const WorkerStatus& worker : workers) {
    if (!worker.is_alive) continue;
    const int rank = worker.sample.global_rank;
    if (worker.stacks) digests.push_back({rank, *worker.stacks});
    const auto condition = ConditionOf(worker.sample, WorkOf(first, worker, apart));
    doing[rank] = ConditionInWords(worker.sample, condition).substr(3);
  }
  return VisibleWaits(SamplesOf(workers), digests, doing);
}

// A worker that shows no operation and no connection may wait for another one all the same.
std::string NoWait(const std::vector<NodeStatus>& nodes) {
  return RanksThatShowNothing(nodes).empty()
             ? "no rank waits for another one\n"
             : "nothing visible: no rank waits in a collective or store that rankrun sees\n";
}

std::string StatesText(const std::vector<WorkerStatus>& first,
                       const std::vector<WorkerStatus>& workers, double apart) {
  std::vector<SameState> states;
  for (const WorkerStatus& worker : workers) {
    SameState state = StateOf(first, worker, apart);
    auto known = std::ranges::find(states, state.of_one, &SameState::of_one);
    if (known == states.end()) {
      states.push_back(std::move(state));
    } else {
      known->ranks.push_back(worker.sample.global_rank);
    }
  }
  std::string text;
  for (const SameState& state : states) {
    text += RanksInWords(state.ranks) + ": " +
            (state.ranks.size() == 1 ? state.of_one : state.of_several) + "\n";
  }
  return text;
}

std::string DetailsOf(const std::vector<WorkerStatus>& first, const WorkerStatus& worker,
                      double apart) {
  std::string text = RanksInWords({worker.sample.global_rank}) + " (pid " + PidOf(worker.sample);
  if (!worker.sample.node.empty()) text += " on " + worker.sample.node;
  text += "): " + StateOf(first, worker, apart).of_one;
  if (!worker.doing.empty()) text += " for " + ShortTime(worker.doing_seconds);
  text += "\n";
  return worker.last_line.empty() ? text : text + "last line: " + worker.last_line + "\n";
}

// Returns a text with the ranks whose waits the answers lack; empty if they have all.
std::string UnknownOf(const std::vector<NodeStatus>& nodes,
                      const std::vector<WorkerStatus>& workers) {
  std::vector<int> ranks;
  for (const WorkerStatus& worker : workers) {
    if (!worker.sample.has_all_groups) ranks.push_back(worker.sample.global_rank);
  }
  int omitted = 0;
  for (const NodeStatus& node : nodes) omitted += node.omitted;
  std::string text;
  if (!ranks.empty()) {
    text += RanksInWords(ranks) + ": not all of their groups are known, for lack of room\n";
  }
  if (omitted > 0)
    text += std::to_string(omitted) + " more ranks are not known, for lack of room\n";
  return text;
}

}  // namespace

std::string ShortTime(double seconds) {
  auto whole = [](double number, const char* unit) {
    return std::to_string(std::lround(std::floor(number))) + unit;
  };
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  constexpr double kDay = 24 * kHour;
  if (seconds < 1) return whole(std::max(0.0, seconds) * 1000, " ms");
  if (seconds < 3 * kMinute) return whole(seconds, " s");
  if (seconds < 3 * kHour) return whole(seconds / kMinute, " min");
  if (seconds < 3 * kDay) return whole(seconds / kHour, " h");
  return whole(seconds / kDay, " d");
}

std::string ShortBytes(uint64_t bytes) {
  constexpr std::array kUnits = {" K", " M", " G", " T"};
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (number >= 1000 && unit + 1 < kUnits.size()) {
    number /= 1024;
    unit += 1;
  }
  std::array<char, 32> text{};
  bool is_small = number < 10 && unit > 0;
  std::snprintf(text.data(), text.size(), is_small ? "%.1f%s" : "%.0f%s", number, kUnits[unit]);
  return text.data();
}

std::string JobsText(const std::vector<NodeStatus>& jobs) {
  TextTable table({{.title = "JOB", .most = kMaxIdWidth},
                   {.title = "PID"},
                   {.title = "NODES"},
                   {.title = "RANKS"},
                   {.title = "ATTEMPT"},
                   {.title = "SINCE"},
                   {.title = "STATE"},
                   {.title = "PROGRAM", .most = kMaxDoing}});
  for (const NodeStatus& job : jobs) {
    table.Add({job.job, std::to_string(job.guardian), std::to_string(job.nodes),
               std::to_string(job.world_size), job.attempt < 0 ? "-" : std::to_string(job.attempt),
               ShortTime(job.seconds), job.phase, job.program});
  }
  return table.Text(SIZE_MAX);
}

CpuTimes CpuTimesOf(const std::vector<NodeStatus>& nodes, double now) {
  CpuTimes times{.seconds = {}, .at = now};
  for (const NodeStatus& node : nodes) {
    for (const WorkerStatus& worker : node.workers) {
      times.seconds[{node.node, worker.sample.pid}] = SecondsOf(worker.sample.cpu_time);
    }
  }
  return times;
}

std::string StatusText(std::vector<NodeStatus> nodes, const CpuTimes& before, double now,
                       size_t width) {
  std::ranges::sort(nodes, {}, [](const NodeStatus& node) { return node.node_rank; });
  std::string text = OneLine(HeadOf(nodes), width) + "\n";
  TextTable table({{.title = "RANK"},
                   {.title = "NODE", .most = kMaxIdWidth, .is_hidden = nodes.size() < 2},
                   {.title = "PID"},
                   {.title = "STATE"},
                   {.title = "SINCE"},
                   {.title = "CPU"},
                   {.title = "MEMORY"},
                   {.title = "DOING", .least = kMinText, .most = kMaxDoing},
                   {.title = "LAST LINE", .least = kMinText}});
  int omitted = 0;
  for (const NodeStatus& node : nodes) {
    omitted += node.omitted;
    for (const WorkerStatus& worker : node.workers) table.Add(RowOf(node, worker, before, now));
  }
  text += table.Text(width);
  if (omitted > 0) text += "and " + std::to_string(omitted) + " more ranks\n";
  for (const NodeStatus& node : nodes) {
    if (!node.waits.empty()) text += OneLine(node.node + " waits: " + node.waits, width) + "\n";
  }
  return text;
}

bool ShowsWaits(const std::vector<NodeStatus>& first, const std::vector<NodeStatus>& second,
                double apart) {
  return !WaitsOf(WorkersOf(first), WorkersOf(second), apart, LongestAttempt(second)).empty();
}

std::vector<int> RanksThatShowNothing(const std::vector<NodeStatus>& nodes) {
  std::vector<int> ranks;
  for (const NodeStatus& node : nodes) {
    for (const WorkerStatus& worker : node.workers) {
      const WorkerSample& sample = worker.sample;
      if (!sample.groups.empty() || !sample.has_all_groups || !sample.awaited.empty()) return {};
      if (worker.is_alive) ranks.push_back(sample.global_rank);
    }
  }
  return ranks;
}

std::string WhyText(const std::vector<NodeStatus>& first, const std::vector<NodeStatus>& second,
                    double apart, int rank) {
  std::vector<WorkerStatus> before = WorkersOf(first);
  std::vector<WorkerStatus> workers = WorkersOf(second);
  std::string text;
  auto waits = WaitsOf(before, workers, apart, LongestAttempt(second));
  if (waits.empty()) waits = HiddenWaitsOf(before, workers, apart);
  for (const std::string& wait : waits) text += wait + "\n";
  text += UnknownOf(second, workers);
  if (text.empty()) text = NoWait(second);
  if (rank < 0) return text + StatesText(before, workers, apart);
  for (const WorkerStatus& worker : workers) {
    if (worker.sample.global_rank == rank) text += DetailsOf(before, worker, apart);
  }
  return text;
}

}  // namespace rankrun::cli
