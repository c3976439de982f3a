#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/backend_options.h>
#include <rankrun/diagnosis/abort.h>
#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>
#include <rankrun/saving_notice.h>
#include <rankrun/store.h>
#include <rankrun/tensor.h>

struct rankrun_backend;
struct rankrun_device_backend;

// Process groups for the workers of a job that rankrun or torchrun has started:
//
//   rankrun::ProcessGroup& world = rankrun::Init();
//   world.AllReduce(gradients);
//   rankrun::Destroy();
namespace rankrun {

struct InitOptions {
  // Limits Init, and every operation of the group that has no time-out of its
  // own. At least 1 ms.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // "auto" means "shm" if all ranks are on one host, "hierarchical" if some share
  // a host, otherwise "tcp". Other backends, such as "gloo", are registered or are
  // loaded from librankrun_<name in lower case>.so. "cpu:shm" means "shm". Tensors in
  // GPU memory need "cpu:shm,cuda:nccl", or "nccl", which means "cpu:auto,cuda:nccl".
  // The variable RANKRUN_BACKEND overrides this.
  std::string backend = "auto";
  // Store in which the ranks meet: "env://", "tcp://host:port" (1..65535; rank
  // 0 serves it, or the agent if its store has that port, whatever the host), or "file:///path"
  // (absolute; the file must not exist yet, and the last Destroy removes it).
  // "?rank=0&world_size=2" may follow.
  std::string init_method = "env://";
  int rank = -1;        // below 0: from init_method, otherwise from RANK
  int world_size = -1;  // below 0: from init_method, otherwise from WORLD_SIZE
  // Replaces init_method and requires rank and world_size. Held until Destroy.
  std::shared_ptr<Store> store = {};
  // GPU of this rank, which Init and later calls that make groups connect to those of the
  // other ranks at once; otherwise the first call on GPU memory does. All ranks have one,
  // or none.
  std::optional<Device> device = {};
  NcclOptions nccl = {};  // of a world with the backend "nccl"
};

// Joins the world process group. Returns when all ranks are connected.
// Environment (an empty string counts as unset):
//   RANK, WORLD_SIZE            rank of this process, number of ranks; without RANK
//                               those of mpirun or srun: OMPI_COMM_WORLD_*, PMI_*, SLURM_*
//   MASTER_ADDR, MASTER_PORT    address of the store in which the ranks meet
//   TORCHELASTIC_USE_AGENT_STORE  "True": the agent serves the store; else rank 0
//   LOCAL_WORLD_SIZE            optional; equal to WORLD_SIZE: all on one host
//   TORCHELASTIC_RESTART_COUNT  optional; separates attempts in the store
//   GLOO_SOCKET_IFNAME          optional; network interfaces, such as "eth0,eth1";
//                               tcp uses all, gloo the first; required on several
//                               hosts that meet in a file or in InitOptions::store
//   RANKRUN_BACKEND             optional; overrides the program's choice
//   RANKRUN_PLUGIN_DIR          optional; folder searched first for backends
//   RANKRUN_HOST_ID             optional; ranks with different values share no
//                               memory, as if they were on different hosts
//   RANKRUN_ALGORITHMS          optional, equal on all ranks; sizes up to which tcp
//                               uses each algorithm: "all_reduce.doubling=16384"
//   RANKRUN_STRICT              "0" or "1": see ProcessGroup
//   RANKRUN_DEBUG, TORCH_DISTRIBUTED_DEBUG  "OFF", "INFO" or "DETAIL": see diagnosis/debug.h
//   RANKRUN_SLOW_CALL_MS        optional; time from which "INFO" logs a collective as
//                               slow (1000)
// Init may be called again after Destroy; all ranks must call it the same
// number of times. A failed call counts, too, unless it is a DistError about
// this rank's own settings; a GLOO_SOCKET_IFNAME that differs between ranks is
// not such an error.
// Errors: DistError for a bad environment or option, or if a world exists;
// DistNetworkError if the store cannot be reached or a rank is lost;
// DistTimeoutError with the missing ranks; DistMismatchError if options or
// world sizes differ between ranks; DistStoreError; DistBackendError. If one
// rank cannot join, the error of every waiting rank names it. After an error, the
// store that rank 0 serves stays open until the next Init, for ranks that are late.
// Thread: any, one at a time.
RANKRUN_API ProcessGroup& Init(const InitOptions& options = {});

// Returns the group that Init made. Throws DistError if there is none.
RANKRUN_API ProcessGroup& World();
RANKRUN_API bool Initialized();

struct GroupOptions {
  std::vector<int> ranks = {};             // global ranks of the members; empty: all
  bool sort_ranks = true;                  // false: group ranks follow the order of `ranks`
  Timeout timeout = {};                    // of its operations; no value: the world's
  std::string backend = {};                // empty, or with RANKRUN_BACKEND: as for the world
  std::string description = {};            // for messages
  bool use_local_synchronization = false;  // only members call, and wait for each other
  std::optional<NcclOptions> nccl = {};    // no value: as the world's
};

// Makes a group of some of the world's ranks. All ranks of the world, members
// or not, call it in the same order with the same options, and wait for each
// other. With local synchronization, only the members call it, in any order
// that forms no cycle of waits. On a rank that is not a member, the result has
// is_member() == false.
// Errors: as Init; DistMismatchError if the calls differ. After a bad option,
// the calls of the waiting ranks fail, too, and name the rank and the option.
// Exception: bad `ranks` with local synchronization, because they do not show
// which ranks wait.
// Thread: any, one at a time.
RANKRUN_API ProcessGroup& NewGroup(const GroupOptions& options);

// Destroys all groups, the newest first: closes this rank's connections and ends
// the library's threads. Waits for this rank's collectives; at most 5 s for the
// others' Destroy if this rank serves the store; on gloo, as long for receivers of
// short messages. A collective in which other ranks still wait for this one fails
// there. Does nothing if there is no world, or in a fork of its process. A destroyed
// ProcessGroup keeps its description and about 150 bytes, so that calls of it are errors.
// Must be called before main returns, and not while another thread uses a group. Abort ends
// what it waits for. Once all ranks have called it, another program may call Init as the same
// rank in the same store.
RANKRUN_API void Destroy();
// Destroys one group, of any context. The last member that calls this deletes
// the group's keys in the store. Destroying a world destroys all its groups.
// Throws DistError if `group` is destroyed.
RANKRUN_API void Destroy(ProcessGroup& group);

// Returns whether Init can use the backend "shm", "tcp", ...; may load a plug-in,
// which looks for GPUs.
RANKRUN_API bool BackendAvailable(const std::string& name);
// Make a backend known to this process, for groups that are made from now on:
// rankrun/backend.h, rankrun/device_backend.h. Copy it. Throw DistError for a name
// that is taken, a struct of another version, or an absent function.
// Thread: any.
RANKRUN_API void RegisterBackend(const rankrun_backend& backend);
RANKRUN_API void RegisterBackend(const rankrun_device_backend& backend);

// Returns the rank of this process among those on its host: LOCAL_RANK, or the
// number that mpirun or srun has given it; without any, `fallback` if it is not
// below 0. Throws DistError otherwise.
RANKRUN_API int NodeLocalRank(int fallback = -1);

// Returns whether rankrun or torchrun started this process.
RANKRUN_API bool LaunchedByAgent();

}  // namespace rankrun
