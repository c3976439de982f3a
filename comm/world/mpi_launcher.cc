#include "comm/world/mpi_launcher.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/parse_number.h"

namespace rankrun::comm {
namespace {

// Variables of one launcher, in the place of ours. Null: it has none.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

bool IsSet(const GetVariable& get, const char* name) {
  const char* value = get(name);
  return value != nullptr && *value != '\0';
}

// Batch scripts and interactive shells have the variables of a task, too, but
// are no task of srun.
bool IsInStep(const GetVariable& get) {
  constexpr uint32_t kFirstSpecialStep = 0xfffffff0;
  const char* step = get("SLURM_STEP_ID");
  auto number = ParseNumber<uint32_t>(step != nullptr ? step : "");
  return number && *number < kFirstSpecialStep;
}

// An mpirun may use srun itself, so the variables of SLURM come last; but those of PMI without a
// local rank may be SLURM's own.
const Names* LauncherOf(const GetVariable& get) {
  auto is_set = [&](const Names& names) {
    return IsSet(get, names.rank) && IsSet(get, names.world_size);
  };
  if (is_set(kOpenMpi)) return &kOpenMpi;
  if (is_set(kPmi) && IsSet(get, kPmi.local_rank)) return &kPmi;
  if (is_set(kSlurm) && IsInStep(get)) return &kSlurm;
  return is_set(kPmi) ? &kPmi : nullptr;
}

// Returns the name of our variable in the launcher's words.
const char* Translated(const GetVariable& get, const Names& names, std::string_view ours) {
  if (ours == "RANK") return names.rank;
  if (ours == "WORLD_SIZE") return names.world_size;
  if (ours == "LOCAL_RANK") return names.local_rank;
  if (ours != "LOCAL_WORLD_SIZE") return nullptr;
  if (names.local_world_size != nullptr) return names.local_world_size;
  const char* nodes = get("SLURM_STEP_NUM_NODES");
  bool is_alone = nodes != nullptr && std::string_view(nodes) == "1";
  return is_alone ? names.world_size : nullptr;
}

}  // namespace

GetVariable WithMpiLauncher(const GetVariable& get) {
  if (IsSet(get, "RANK")) return get;
  const Names* names = LauncherOf(get);
  if (names == nullptr) return get;
  return [get, names](const char* ours) {
    const char* theirs = IsSet(get, ours) ? nullptr : Translated(get, *names, ours);
    return get(theirs != nullptr ? theirs : ours);
  };
}

}  // namespace rankrun::comm
