#include <algorithm>
#include <array>
#include <set>

#include "agent/machine/binding.h"

namespace rankrun::agent {
namespace {

using Row = std::array<std::string, 6>;

// Returns "0,1": the numbers that `get` returns for the cores of `cpus`.
template <typename Get>
std::string Numbers(const Topology& topology, const Cpus& cpus, Get get) {
  std::set<int> numbers;
  for (const Core& core : topology.cores) {
    bool used = std::ranges::any_of(core.cpus,
                                    [&](int cpu) { return std::ranges::binary_search(cpus, cpu); });
    if (used) numbers.insert(get(core));
  }
  return FormatCpus({numbers.begin(), numbers.end()});
}

size_t CountCores(const Topology& topology, const Cpus& cpus) {
  return Within(topology, cpus).cores.size();
}

Row MakeRow(const Topology& topology, const Cpus& cpus, size_t local_rank,
            const std::vector<std::string>& gpus) {
  return {std::to_string(local_rank),
          FormatCpus(cpus),
          std::to_string(CountCores(topology, cpus)),
          Numbers(topology, cpus, [](const Core& core) { return core.numa_node; }),
          Numbers(topology, cpus, [](const Core& core) { return core.package; }),
          local_rank < gpus.size() ? gpus[local_rank] : "-"};
}

}  // namespace

std::string BindingTable(const Topology& topology, const std::vector<Cpus>& plan,
                         const std::vector<std::string>& gpus) {
  std::vector<Row> rows = {{"local rank", "CPUs", "cores", "NUMA node", "package", "GPU"}};
  for (size_t rank = 0; rank < plan.size(); ++rank) {
    rows.push_back(MakeRow(topology, plan[rank], rank, gpus));
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t column = 0; column < row.size(); ++column) {
      size_t width = 0;
      for (const Row& other : rows) width = std::max(width, other[column].size());
      bool last = column + 1 == row.size();
      text += row[column];
      if (!last) text.append(width - row[column].size() + 2, ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace rankrun::agent
