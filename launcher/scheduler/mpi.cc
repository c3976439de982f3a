#include "launcher/scheduler/mpi.h"

#include <algorithm>

#include "base/parse_number.h"

namespace rankrun::launcher {
namespace {

struct Names {
  const char* size;
  const char* rank;
  const char* local_size;
  const char* one_per_node;  // command that starts one process per node
  const char* more_cpus;     // command that does not bind the process
};

std::optional<SourcedValue<int>> Number(const Environment& environment, const char* name,
                                        int least) {
  auto text = environment(name);
  auto number = text ? ParseNumber<int>(*text) : std::nullopt;
  if (!number || *number < least) return std::nullopt;
  return SourcedValue<int>{*number, name};
}

std::optional<Scheduler> Read(const Environment& environment, const Names& names) {
  auto size = Number(environment, names.size, 1);
  auto rank = Number(environment, names.rank, 0);
  if (!size || !rank) return std::nullopt;
  Scheduler result;
  result.nodes = size;
  result.node_index = rank;
  result.more_cpus = names.more_cpus;
  result.no_endpoint =
      std::string(names.size) +
      ": mpirun gives no address for the rendezvous; want --rdzv-endpoint HOST:PORT "
      "or --master-addr HOST";
  auto local = Number(environment, names.local_size, 1);
  if (local && local->value > 1) {
    result.no_nodes = local->variable + ": mpirun starts rankrun " + std::to_string(local->value) +
                      " times on this node, but rankrun starts the workers itself: want " +
                      names.one_per_node + ", or --standalone for one job per process";
  }
  return result;
}

}  // namespace

std::optional<Scheduler> ReadOpenMpi(const Environment& environment) {
  return Read(environment, {.size = "OMPI_COMM_WORLD_SIZE",
                            .rank = "OMPI_COMM_WORLD_RANK",
                            .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                            .one_per_node = "mpirun --map-by ppr:1:node",
                            .more_cpus = "mpirun --bind-to none"});
}

std::optional<Scheduler> ReadPmi(const Environment& environment) {
  return Read(environment, {.size = "PMI_SIZE",
                            .rank = "PMI_RANK",
                            .local_size = "MPI_LOCALNRANKS",
                            .one_per_node = "mpirun -ppn 1",
                            .more_cpus = "mpirun -bind-to none (Intel MPI: -genv I_MPI_PIN off)"});
}

bool IsPreparedForMpi(const Environment& environment) {
  constexpr const char* kNames[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD"};
  return std::ranges::any_of(kNames,
                             [&](const char* name) { return environment(name).has_value(); });
}

bool IsOfMpi(std::string_view variable) {
  return variable.starts_with("OMPI_") || variable.starts_with("PMIX_") ||
         variable.starts_with("PMI_");
}

}  // namespace rankrun::launcher
