#include "comm/mpi/runtime.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "base/mutex.h"
#include "comm/mpi/progress.h"

namespace rankrun::comm::mpi {
namespace {

// Variables that launchers of MPI set for each process: Open MPI's mpirun and srun
// --mpi=pmix, MPICH's mpiexec, srun --mpi=pmi2.
constexpr const char* kSetByLaunchers[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                           "PMI_ID"};

// Fails unless a launcher of MPI has started this process itself. A worker of rankrun has
// the variables of its agent, whose place in MPI it cannot take.
Result<void> CheckLauncher() {
  const std::string want = ": want workers that mpirun or srun --mpi=pmix starts";
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr) {
    return Error{ErrorCode::kInvalid,
                 "rankrun or torchrun has started this process, unknown to MPI" + want};
  }
  for (const char* variable : kSetByLaunchers) {
    if (std::getenv(variable) != nullptr) return {};
  }
  return Error{ErrorCode::kInvalid,
               "no MPI launcher has started this process, and MPI connects no others" + want};
}

Result<void> CheckThreads(int provided) {
  if (provided == MPI_THREAD_MULTIPLE) return {};
  return Error{ErrorCode::kInvalid,
               "MPI was started without MPI_THREAD_MULTIPLE: want a program that leaves "
               "MPI_Init to rankrun, or an MPI that has it"};
}

pid_t started_by = 0;  // the process that started MPI

// Ends MPI, which waits for the ends of the other ranks. Nothing in a fork.
void FinishMpi() {
  if (getpid() != started_by) return;
  int is_over = 0;
  if (MPI_Finalized(&is_over) != MPI_SUCCESS || is_over != 0) return;
  static_cast<void>(MPI_Finalize());
}

// Lets MPI_Finalize, by whomever it is called, first end the channels.
Result<void> EndChannelsFirst() {
  int key = MPI_KEYVAL_INVALID;
  auto finish = [](MPI_Comm, int, void*, void*) {
    FinishProgress();
    return MPI_SUCCESS;
  };
  auto made = Mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &key, nullptr),
                  "MPI_Comm_create_keyval");
  if (!made) return made;
  return Mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
}

Result<void> StartOnce() {
  int has_started = 0, provided = 0;
  if (auto ok = Mpi(MPI_Initialized(&has_started), "MPI_Initialized"); !ok) return ok;
  if (has_started != 0) {
    if (auto ok = Mpi(MPI_Query_thread(&provided), "MPI_Query_thread"); !ok) return ok;
  } else {
    auto ok =
        Mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    if (!ok) return ok;
    started_by = getpid();
    std::atexit(FinishMpi);
  }
  if (auto ok = CheckThreads(provided); !ok) return ok;
  return EndChannelsFirst();
}

}  // namespace

Result<void> Mpi(int status, const char* function) {
  if (status == MPI_SUCCESS) return {};
  char words[MPI_MAX_ERROR_STRING] = "unknown error";
  int size = 0;
  static_cast<void>(MPI_Error_string(status, words, &size));
  return Error{ErrorCode::kSystem, std::string(function) + ": " + words};
}

Result<void> CheckMpi(int world_size) {
  int has_started = 0;
  if (auto ok = Mpi(MPI_Initialized(&has_started), "MPI_Initialized"); !ok) return ok;
  if (has_started != 0) return {};
  if (auto ok = CheckLauncher(); !ok) return ok;
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(variable);
    if (size == nullptr || std::atoi(size) == world_size) continue;
    return Error{ErrorCode::kInvalid,
                 std::string(variable) + " is " + size + ", and the group has " +
                     std::to_string(world_size) +
                     " ranks: want the first group on MPI to have all of them"};
  }
  return {};
}

Result<void> StartMpi() {
  static auto* const kOneAtATime = new Mutex;
  static bool has_started = false;
  MutexLock lock(*kOneAtATime);
  if (has_started) return {};
  auto ok = StartOnce();
  has_started = static_cast<bool>(ok);
  return ok;
}

std::string MpiNamespace() {
  for (const char* variable : {"PMIX_NAMESPACE", "PMI_JOBID", "PMI_KVS_NAME", "SLURM_STEP_ID"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return "-";
}

}  // namespace rankrun::comm::mpi
