#include "bench/rankrun_bench/tune.h"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <rankrun/context.h>

#include "bench/rankrun_bench/fit.h"
#include "bench/rankrun_bench/measurement.h"

namespace rankrun::bench {
namespace {

const std::string kAlways = "=" + std::to_string(size_t{1} << 62);

struct Algorithm {
  std::string name;
  std::string entries;  // of RANKRUN_ALGORITHMS, which choose it at each size
  std::string limit;    // entry with the largest size at which it is chosen
};
// In the order in which they take over; the last one has no limit.
using Algorithms = std::vector<Algorithm>;

// Returns the sets of algorithms of which a table can choose one.
std::vector<Algorithms> SetsOf(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce: {
      const std::string limit = ranks > 2 ? "all_reduce.doubling" : "all_reduce.doubling_of_two";
      Algorithm doubling{"doubling", limit + kAlways, limit};
      Algorithm halving{"halving", limit + "=0 all_reduce.halving" + kAlways, "all_reduce.halving"};
      Algorithm ring{"ring", limit + "=0 all_reduce.halving=0", ""};
      if (!std::has_single_bit(static_cast<unsigned>(ranks))) return {{doubling, ring}};
      return {{doubling, halving, ring}};
    }
    case Collective::kAllGather: {
      const std::string all = std::to_string(ranks), fewer = std::to_string(ranks - 1);
      Algorithm direct{"direct", "all_gather.direct_ranks=" + all + " all_gather.direct" + kAlways,
                       "all_gather.direct_ranks=" + all + " all_gather.direct"};
      Algorithm bruck{"bruck", "all_gather.direct_ranks=" + fewer + " all_gather.bruck" + kAlways,
                      "all_gather.direct_ranks=" + fewer + " all_gather.bruck"};
      Algorithm pairwise{"pairwise", "all_gather.direct=0 all_gather.bruck=0", ""};
      return {{direct, pairwise}, {bruck, pairwise}};
    }
    case Collective::kBroadcast:
      if (ranks == 2) return {{{"tree", "", ""}}};
      return {{{"tree", "broadcast.tree" + kAlways, "broadcast.tree"},
               {"chain", "broadcast.tree=0", ""}}};
    default:
      return {{{"direct", "all_to_all.direct" + kAlways, "all_to_all.direct"},
               {"pairwise", "all_to_all.direct=0", ""}}};
  }
}

// Times of a set of algorithms.
struct Times {
  std::vector<size_t> sizes;                // as RANKRUN_ALGORITHMS counts them
  std::vector<std::vector<double>> of_set;  // in microseconds, by algorithm and size
  int64_t wrong = 0;
};

// The table of algorithms is read when a world is made.
std::vector<std::unique_ptr<Context>> WorldsOf(const Algorithms& algorithms) {
  std::vector<std::unique_ptr<Context>> worlds;
  for (const Algorithm& algorithm : algorithms) {
    setenv("RANKRUN_ALGORITHMS", algorithm.entries.c_str(), 1);
    worlds.push_back(
        std::make_unique<Context>("tune_" + algorithm.name, InitOptions{.backend = "tcp"}));
  }
  return worlds;
}

void PrintLine(const Options& options, Collective collective, const Algorithms& algorithms,
               const Times& times) {
  const size_t last = times.sizes.size() - 1;
  if (options.json) {
    nlohmann::ordered_json line{{"collective", NameOf(collective)}, {"bytes", times.sizes[last]}};
    for (size_t a = 0; a < algorithms.size(); ++a) {
      line["us"][algorithms[a].name] = times.of_set[a][last];
    }
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%12zu", times.sizes[last]);
    for (const auto& of_one : times.of_set) std::printf(" %12.2f", of_one[last]);
    std::printf("\n");
  }
  std::fflush(stdout);
}

void PrintHead(const Options& options, Collective collective, const Algorithms& algorithms,
               int ranks) {
  if (options.json) return;
  std::printf("# %s: %d ranks, tcp; microseconds per call\n#%11s", NameOf(collective), ranks,
              "size");
  for (const Algorithm& algorithm : algorithms) std::printf(" %12s", algorithm.name.c_str());
  std::printf("\n");
}

// Measures all algorithms at one size before the next, so that a disturbance hits
// all of them.
Times Measure(const Options& options, Collective collective, const Algorithms& algorithms) {
  auto worlds = WorldsOf(algorithms);
  ProcessGroup& first = worlds.front()->World();
  const bool speaks = first.global_rank() == 0;
  const bool counts_blocks =
      collective == Collective::kAllGather || collective == Collective::kAllToAll;
  const size_t parts = counts_blocks ? static_cast<size_t>(first.world_size()) : 1;
  if (speaks) PrintHead(options, collective, algorithms, first.world_size());
  Times times{.sizes = {}, .of_set = std::vector<std::vector<double>>(algorithms.size())};
  size_t bytes = options.min_bytes;
  for (bool more = true; more; bytes *= options.factor) {
    more = bytes <= options.max_bytes / options.factor;
    const size_t size = Measurement(first, options, collective, bytes).bytes() / parts;
    if (!times.sizes.empty() && times.sizes.back() == size) continue;
    times.sizes.push_back(size);
    for (size_t a = 0; a < worlds.size(); ++a) {
      Figures figures = Measurement(worlds[a]->World(), options, collective, bytes).Run();
      times.of_set[a].push_back(figures.times.microseconds);
      times.wrong += figures.wrong;
    }
    if (speaks) PrintLine(options, collective, algorithms, times);
  }
  return times;
}

// Returns the entries for the fastest choice, "" if there is no choice.
std::string EntriesOf(const Algorithms& algorithms, const Times& times, const Fit& fit) {
  std::string entries;
  for (size_t a = 0; a < fit.cuts.size(); ++a) {
    size_t limit = fit.cuts[a] == 0 ? 0 : times.sizes[fit.cuts[a] - 1];
    entries += (entries.empty() ? "" : " ") + algorithms[a].limit + "=" + std::to_string(limit);
  }
  return entries;
}

}  // namespace

bool HasAlgorithms(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kBroadcast || collective == Collective::kAllToAll;
}

int64_t Tune(const Options& options) {
  ProcessGroup& world = Init({.backend = "tcp"});
  if (world.backend() != "tcp") {
    throw DistError("--tune: RANKRUN_BACKEND chooses " + world.backend() +
                    ", which has no table of algorithms: want tcp");
  }
  std::string table;
  int64_t wrong = 0;
  for (Collective collective : options.collectives) {
    std::string entries;
    double cost = 0;
    for (const Algorithms& algorithms : SetsOf(collective, world.world_size())) {
      Times times = Measure(options, collective, algorithms);
      Fit fit = FitAlgorithms(times.of_set);
      wrong += times.wrong;
      if (!entries.empty() && fit.cost >= cost) continue;
      entries = EntriesOf(algorithms, times, fit);
      cost = fit.cost;
    }
    if (!entries.empty()) table += (table.empty() ? "" : " ") + entries;
  }
  if (world.global_rank() == 0) {
    const std::string line = options.json ? nlohmann::json{{"algorithms", table}}.dump()
                                          : "RANKRUN_ALGORITHMS=\"" + table + "\"";
    std::printf("%s\n", line.c_str());
    if (wrong > 0) std::fprintf(stderr, "rankrun-bench: %" PRId64 " elements were wrong\n", wrong);
  }
  Destroy();
  return wrong;
}

}  // namespace rankrun::bench
