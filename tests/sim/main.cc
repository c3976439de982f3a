#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "agent/coordination/mutation.h"
#include "tests/sim/sim.h"

// Simulates a range of seeds until one breaks an invariant.
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
                 "kind of faults: none, failures, blips, silence, stuck or all");
  app.add_option("--runs", runs, "number of consecutive seeds");
  int mutation = 0;
  app.add_option("--mutation", mutation,
                 "a deliberate bug, by its number in agent/coordination/mutation.h");
  app.add_flag("--lose-one", options.loses_one, "lose one machine while all workers run");
  app.add_flag("--trace", options.is_traced, "print every event");
  CLI11_PARSE(app, argc, argv);
  auto known = rankrun::sim::FaultsNamed(faults);
  if (!known) {
    std::fprintf(stderr, "sim: unknown kind of faults: %s\n", faults.c_str());
    return 2;
  }
  options.faults = *known;
  rankrun::agent::g_mutation = static_cast<rankrun::agent::Mutation>(mutation);

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
