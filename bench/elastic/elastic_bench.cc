// elastic_bench [--rounds N] [--peer-rounds N] [--limit SECONDS] WORKER
//               RANKRUN [TORCHRUN]
// Two and three nodes on this machine: the time until another node detects a
// loss, and until all workers run again, by the workers' own clocks. Prints
// medians. A peer that exceeds the limit counts as failed.

#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "bench/elastic/elastic_cluster.h"
#include "bench/timing.h"

namespace rankrun::bench {
namespace {

constexpr int kFormMilliseconds = 30'000;
// Time until a node that has started its workers is idle.
constexpr std::chrono::milliseconds kCalm{400};

using Times = std::vector<std::optional<double>>;  // milliseconds

struct Trial {
  const Launcher& launcher;
  int limit;  // milliseconds
};

struct Figure {
  std::string name;
  double target;  // milliseconds; 0: none
};

struct Scenario {
  std::vector<Figure> figures;
  std::function<Times(const Trial&)> run;
};

std::optional<double> Between(int64_t begin, std::optional<int64_t> end) {
  if (!end) return std::nullopt;
  return static_cast<double>(*end - begin) / 1e6;
}

// Starts `nodes` and waits until all are idle.
bool Form(Cluster& cluster, const std::string& nodes) {
  int64_t begin = 0;
  for (char node : nodes) begin = std::max(begin, cluster.Start(node));
  bool has_formed = cluster.AwaitAttempt(nodes, 0, kFormMilliseconds).has_value();
  if (has_formed) std::this_thread::sleep_for(kCalm);
  return has_formed;
}

Times WorkerDies(const Trial& trial) {
  Cluster cluster(trial.launcher, {"--nnodes=2"});
  if (!Form(cluster, "AB")) return {};
  int64_t died = cluster.KillWorker('B');
  auto told = cluster.Await(ElasticLog::kGotTerm, "A", died, trial.limit);
  if (!told) return {};
  return {Between(died, told), Between(died, cluster.AwaitAttempt("AB", died, trial.limit))};
}

Times AgentDies(const Trial& trial) {
  Cluster cluster(trial.launcher, {"--nnodes=2"});
  if (!Form(cluster, "AB")) return {};
  int64_t died = cluster.KillAgent('B');
  auto told = cluster.Await(ElasticLog::kGotTerm, "A", died, trial.limit);
  if (!told) return {};
  return {Between(died, told), Between(died, cluster.AwaitAttempt("AB", died, trial.limit))};
}

Times HostIsSilent(const Trial& trial) {
  std::vector<std::string> flags{"--nnodes=1:2"};
  if (trial.launcher.has_guardian) flags.push_back("--node-timeout=1");
  Cluster cluster(trial.launcher, flags);
  if (!Form(cluster, "AB")) return {};
  int64_t froze = cluster.Freeze('B');
  auto told = cluster.Await(ElasticLog::kGotTerm, "A", froze, trial.limit);
  if (!told) return {};
  return {Between(froze, told), Between(froze, cluster.AwaitAttempt("A", froze, trial.limit))};
}

Times CoordinatorDies(const std::string& nodes, const Trial& trial) {
  Cluster cluster(trial.launcher, {"--nnodes=" + std::to_string(nodes.size())});
  if (!Form(cluster, nodes)) return {};
  int64_t died = cluster.KillAgent('A');
  Times times{Between(died, cluster.AwaitAttempt(nodes, died, trial.limit))};
  if (cluster.overlaps() == 0) return times;
  std::fprintf(stderr, "elastic_bench: %s: %d workers began beside an earlier attempt\n",
               trial.launcher.name.c_str(), cluster.overlaps());
  return {};
}

Times SecondNodeJoins(const Trial& trial) {
  Cluster cluster(trial.launcher, {"--nnodes=1:2"});
  if (!Form(cluster, "A")) return {};
  int64_t came = cluster.Start('B');
  return {Between(came, cluster.AwaitAttempt("AB", came, trial.limit))};
}

// Measures from the arrival of the replacement, because the loss itself is over
// by then.
Times ReplacementArrives(const Trial& trial) {
  std::vector<std::string> flags{"--nnodes=2"};
  if (trial.launcher.has_guardian) flags.push_back("--node-timeout=1");
  Cluster cluster(trial.launcher, flags);
  if (!Form(cluster, "AB")) return {};
  int64_t died = cluster.Kill('B');
  if (trial.launcher.has_guardian && !cluster.Await(ElasticLog::kGotTerm, "A", died, trial.limit)) {
    return {};
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // limit for B's workers to end
  int64_t came = cluster.Start('C');
  return {Between(came, cluster.AwaitAttempt("AC", came, trial.limit))};
}

std::vector<Scenario> Scenarios() {
  return {
      {{{"a worker dies: SIGTERM on the other node", 20}, {"  all run again", 100}}, WorkerDies},
      {{{"an agent dies: SIGTERM on the other node", 50}, {"  all run again", 0}}, AgentDies},
      {{{"a host is silent (1 s allowed): SIGTERM", 1500}, {"  the other goes on alone", 0}},
       HostIsSilent},
      {{{"coordinator's agent dies, 2 nodes: all run", 1000}},
       [](const Trial& trial) { return CoordinatorDies("AB", trial); }},
      {{{"coordinator's agent dies, 3 nodes: all run", 1000}},
       [](const Trial& trial) { return CoordinatorDies("ABC", trial); }},
      {{{"a second node joins 1:2: both run", 150}}, SecondNodeJoins},
      {{{"a replacement arrives: both run", 200}}, ReplacementArrives},
  };
}

struct Settings {
  int rounds = 11;
  int peer_rounds = 3;
  int limit_seconds = 20;
  std::string worker;
  std::vector<Launcher> launchers;
};

bool Parse(int argc, char** argv, Settings& settings) {
  int i = 1;
  for (; i + 1 < argc && std::strncmp(argv[i], "--", 2) == 0; i += 2) {
    std::string flag = argv[i];
    int* value = flag == "--rounds"        ? &settings.rounds
                 : flag == "--peer-rounds" ? &settings.peer_rounds
                 : flag == "--limit"       ? &settings.limit_seconds
                                           : nullptr;
    if (value == nullptr) return false;
    *value = std::atoi(argv[i + 1]);
  }
  if (argc - i < 2 || argc - i > 3) return false;
  settings.worker = argv[i];
  settings.launchers.push_back({"rankrun", argv[i + 1], true, settings.worker});
  if (argc - i == 3)
    settings.launchers.push_back({"torchrun", argv[i + 2], false, settings.worker});
  return true;
}

// Returns the medians of all figures of a scenario; nothing for figures that
// ever failed.
Times Measure(const Scenario& scenario, const Trial& trial, int rounds) {
  std::vector<std::vector<double>> all(scenario.figures.size());
  for (int round = 0; round < rounds; ++round) {
    Times times = scenario.run(trial);
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i]) all[i].push_back(*times[i]);
    }
  }
  Times medians;
  for (const auto& values : all) {
    bool is_complete = values.size() == static_cast<size_t>(rounds);
    medians.push_back(is_complete ? std::optional(Median(values)) : std::nullopt);
  }
  return medians;
}

void PrintTime(std::optional<double> time) {
  if (time) {
    std::printf(" %9.1f ms", *time);
  } else {
    std::printf(" %12s", "failed");
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  if (!Parse(argc, argv, settings)) {
    std::fputs(
        "usage: elastic_bench [--rounds N] [--peer-rounds N] [--limit SECONDS] WORKER RANKRUN"
        " [TORCHRUN]\n",
        stderr);
    return 2;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  bool has_failed = false;
  std::printf("%-45s", "");
  for (const Launcher& launcher : settings.launchers) std::printf(" %12s", launcher.name.c_str());
  std::printf(" %12s\n", "target");
  for (const Scenario& scenario : Scenarios()) {
    std::vector<Times> columns;
    for (const Launcher& launcher : settings.launchers) {
      Trial trial{launcher, settings.limit_seconds * 1000};
      int rounds = launcher.has_guardian ? settings.rounds : settings.peer_rounds;
      columns.push_back(Measure(scenario, trial, rounds));
    }
    for (size_t i = 0; i < scenario.figures.size(); ++i) {
      std::printf("%-45s", scenario.figures[i].name.c_str());
      for (const Times& column : columns) PrintTime(column[i]);
      if (scenario.figures[i].target > 0) std::printf(" %9.0f ms", scenario.figures[i].target);
      std::printf("\n");
      if (!columns[0][i]) has_failed = true;  // only rankrun must not fail
    }
    std::fflush(stdout);
  }
  return has_failed ? 1 : 0;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }
