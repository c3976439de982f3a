#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>
#include <rankrun/store.h>
#include <rankrun/tensor.h>

// The worker's side of a job that rankrun (or torchrun) has started:
//
//   rankrun::ProcessGroup& world = rankrun::Init();
//   world.AllReduce(gradients);
//   rankrun::Destroy();
namespace rankrun {

struct InitOptions {
  // For Init itself and, where a call gives none of its own, for every
  // operation of the group. At least 1 ms.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // "auto": "shm" if all ranks are on one host, else "gloo"; others are loaded
  // from librankrun_<in lower case>.so. The variable RANKRUN_BACKEND wins.
  std::string backend = "auto";
  // Where the ranks meet: "env://", "tcp://host:port" (1..65535), of which
  // rank 0 is the server, or "file:///path", a file that is not there yet;
  // "?rank=0&world_size=2" may follow. The path is absolute.
  std::string init_method = "env://";
  int rank = -1;  // below 0: from init_method, else from RANK; so is the next
  int world_size = -1;
  // Instead of init_method; rank and world_size are needed then. Held until Destroy.
  std::shared_ptr<Store> store = {};
};

// Joins the other ranks of the job in the world process group; returns when
// all have come and are connected. What is read from the environment (an
// empty string counts as unset):
//   RANK, WORLD_SIZE            this process's place
//   MASTER_ADDR, MASTER_PORT    the store in which the ranks meet
//   TORCHELASTIC_USE_AGENT_STORE  "True": the agent serves it, else rank 0 does
//   LOCAL_WORLD_SIZE            optional; equal to WORLD_SIZE: all on one host
//   TORCHELASTIC_RESTART_COUNT  optional; keeps attempts apart in the store
//   GLOO_SOCKET_IFNAME          optional; the network interface to use (of a
//                               list, the first); needed for gloo on several
//                               hosts that meet in a file or a store of theirs
//   RANKRUN_BACKEND             optional; instead of what the program asks for
//   RANKRUN_PLUGIN_DIR          optional; where to look for backends first
//   RANKRUN_STRICT              "0", or "1": see ProcessGroup
//   RANKRUN_DEBUG, TORCH_DISTRIBUTED_DEBUG  "DETAIL": compare all calls first
// After Destroy it may be called again, by all ranks equally often.
// Errors: DistError for a bad environment or option, or if there already is a
// world; DistNetworkError if the store cannot be reached or a rank is lost
// on the way; DistTimeoutError naming the ranks that did not come in time;
// DistMismatchError if the ranks' options or world sizes differ; DistStoreError;
// DistBackendError. What keeps one rank from joining is told to all who wait,
// naming it. Nothing is left open after an error. It counts as a call
// for "equally often", unless it was a DistError for what is this rank's alone;
// different GLOO_SOCKET_IFNAMEs are not.
// Thread: any, one at a time.
RANKRUN_API ProcessGroup& Init(const InitOptions& options = {});

// The group that Init made. Throws DistError if there is none.
RANKRUN_API ProcessGroup& World();
RANKRUN_API bool Initialized();

struct GroupOptions {
  std::vector<int> ranks = {};             // global ranks of the members; empty: all
  bool sort_ranks = true;                  // false: group ranks are in the order given
  Timeout timeout = {};                    // of its operations; nothing: the world's
  std::string backend = {};                // empty, or with RANKRUN_BACKEND: as for the world
  std::string description = {};            // for messages
  bool use_local_synchronization = false;  // only members call, and wait for each other
};

// Makes a group of some of the world's ranks. All ranks of the world call it, in
// the same order and with the same options, members or not, and wait for each
// other; with local synchronization only the members do, in any order that has
// no cycle. On a rank that is no member the result has is_member() == false.
// Errors: as Init; DistMismatchError if ranks called it differently. A DistError
// for a bad option is told to all who wait, naming the rank and the option; but
// bad ranks are not with local synchronization, as they do not say who waits.
// Thread: any, one at a time.
RANKRUN_API ProcessGroup& NewGroup(const GroupOptions& options);

// Closes this rank's connections and ends the library's threads, of all groups,
// the last made first. Waits for collectives under way on this rank; the rank
// that serves the store waits for the others' Destroy, too, for at most 5 s.
// Ranks that still are in a collective with this one lose it. Does nothing if
// there is no world. References to groups dangle afterwards. To be called
// before main returns. Not while another thread uses a group.
RANKRUN_API void Destroy();
// The same for one group; the last of its members deletes its keys in the store.
// Throws DistError if there is no such group; of the world: as Destroy().
RANKRUN_API void Destroy(ProcessGroup& group);

// Whether Init could use it: "shm", "gloo", ...; loads it, if need be.
RANKRUN_API bool BackendAvailable(const std::string& name);
// Whether rankrun or torchrun has started this process.
RANKRUN_API bool LaunchedByAgent();

// While one lives, this worker saves what must not be cut short: rankrun awaits
// its end for up to --save-timeout instead of --shutdown-timeout. Several may
// live at a time. Needs no Init. A process that ends saves no longer.
//   {
//     rankrun::SavingNotice saving;
//     WriteCheckpoint();
//   }
// Thread: any.
class RANKRUN_API SavingNotice {
 public:
  SavingNotice();
  SavingNotice(const SavingNotice&) = delete;
  SavingNotice& operator=(const SavingNotice&) = delete;
  ~SavingNotice();

  // Whether rankrun can read it; it cannot where another launcher, or none,
  // has started this process.
  bool heard() const { return heard_; }

 private:
  bool heard_;
};

}  // namespace rankrun
