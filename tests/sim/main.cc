#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "agent/coordination/mutation.h"
#include "agent/report/verdict_rule.h"
#include "tests/sim/sim.h"
#include "tests/sim/verdict/trial.h"

namespace {

// Judges failed attempts until the cause of one is not its culprit.
int TrySeeds(uint64_t first, uint64_t runs, bool is_traced) {
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    const rankrun::sim::TrialResult result = rankrun::sim::Try(seed, is_traced);
    const bool holds = result.violation.empty();
    if (runs > 1 && holds) continue;
    std::printf("%s: %s; %s\n", rankrun::sim::TrialCommand(seed).c_str(), result.fault.c_str(),
                holds ? "it is named" : result.violation.c_str());
    if (!holds) return 1;
  }
  return 0;
}

// Simulates jobs until one breaks an invariant.
int SimulateSeeds(rankrun::sim::Options options, uint64_t runs) {
  for (uint64_t i = 0; i < runs; ++i, ++options.seed) {
    rankrun::sim::Result result = rankrun::sim::Simulate(options);
    bool is_shown = runs == 1 || !result.violation.empty();
    if (!is_shown) continue;
    std::printf("%s: %s; %d rounds, verdict %d, %llu events\n",
                rankrun::sim::CommandLine(options).c_str(),
                result.violation.empty() ? "all invariants held" : result.violation.c_str(),
                result.rounds, result.verdict, static_cast<unsigned long long>(result.events));
    if (!result.violation.empty()) return 1;
  }
  return 0;
}

}  // namespace

// Simulates a range of seeds.
int main(int argc, char** argv) {
  rankrun::sim::Options options;
  uint64_t runs = 1;
  std::string faults = "all";
  CLI::App app("Simulates a job of many nodes in virtual time, with random faults.");
  app.add_option("--seed", options.seed, "the number that determines the whole run");
  app.add_option("--nodes", options.nodes, "nodes at the start")->check(CLI::Range(1, 100'000));
  app.add_option("--min", options.min, "minimum of nodes; 0: chosen by the seed");
  app.add_option("--max", options.max, "maximum of nodes; 0: chosen by the seed");
  app.add_option("--faults", faults,
                 "kind of faults: none, failures, blips, silence, stuck, sick or all");
  app.add_option("--runs", runs, "number of consecutive seeds");
  int mutation = 0;
  app.add_option("--mutation", mutation,
                 "a deliberate bug, by its number in agent/coordination/mutation.h");
  app.add_flag("--lose-one", options.loses_one, "lose one machine while all workers run");
  app.add_flag("--trace", options.is_traced, "print every event");
  bool judges = false;
  app.add_flag("--verdict", judges, "judge the ends of a failed attempt instead of a whole job");
  int missing_rule = 0;
  app.add_option("--missing-rule", missing_rule,
                 "a rule of the verdict, by its number in agent/report/verdict_rule.h");
  CLI11_PARSE(app, argc, argv);
  auto known = rankrun::sim::FaultsNamed(faults);
  if (!known) {
    std::fprintf(stderr, "sim: unknown kind of faults: %s\n", faults.c_str());
    return 2;
  }
  options.faults = *known;
  rankrun::agent::g_missing_rule = static_cast<rankrun::agent::VerdictRule>(missing_rule);
  if (judges) return TrySeeds(options.seed, runs, options.is_traced);
  rankrun::agent::g_mutation = static_cast<rankrun::agent::Mutation>(mutation);

  return SimulateSeeds(options, runs);
}
