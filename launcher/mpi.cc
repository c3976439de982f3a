#include "launcher/mpi.h"

#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

struct Names {
  const char* size;
  const char* rank;
  const char* local_size;
  const char* one_per_node;  // how to ask for it
};

std::optional<Said<int>> Number(const Environment& environment, const char* name, int least) {
  auto text = environment(name);
  auto number = text ? ParseNumber<int>(*text) : std::nullopt;
  if (!number || *number < least) return std::nullopt;
  return Said<int>{*number, name};
}

std::optional<Scheduler> Read(const Environment& environment, const Names& names) {
  auto size = Number(environment, names.size, 1);
  auto rank = Number(environment, names.rank, 0);
  if (!size || !rank) return std::nullopt;
  Scheduler result;
  result.nodes = size;
  result.node_index = rank;
  result.no_endpoint = std::string(names.size) +
                       ": mpirun does not say where the nodes meet; want --rdzv-endpoint HOST:PORT "
                       "or --master-addr HOST";
  auto local = Number(environment, names.local_size, 1);
  if (local && local->value > 1) {
    result.no_nodes = local->variable + ": mpirun starts rankrun " + std::to_string(local->value) +
                      " times on this node, want once, since it starts the workers itself: " +
                      names.one_per_node + "; or --standalone, for a job each";
  }
  return result;
}

}  // namespace

std::optional<Scheduler> ReadOpenMpi(const Environment& environment) {
  return Read(environment, {.size = "OMPI_COMM_WORLD_SIZE",
                            .rank = "OMPI_COMM_WORLD_RANK",
                            .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                            .one_per_node = "mpirun --map-by ppr:1:node"});
}

std::optional<Scheduler> ReadPmi(const Environment& environment) {
  return Read(environment, {.size = "PMI_SIZE",
                            .rank = "PMI_RANK",
                            .local_size = "MPI_LOCALNRANKS",
                            .one_per_node = "mpirun -ppn 1"});
}

}  // namespace rankrun::launcher
