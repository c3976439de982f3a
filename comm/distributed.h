#pragma once

#include <chrono>
#include <string>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>
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
  std::string backend = "gloo";  // loaded from librankrun_<backend>.so
};

// Joins the other ranks of the job in the world process group; returns when
// all have come and are connected. What is read from the environment (an
// empty string counts as unset):
//   RANK, WORLD_SIZE            this process's place
//   MASTER_ADDR, MASTER_PORT    the store in which the ranks meet
//   LOCAL_WORLD_SIZE            optional; equal to WORLD_SIZE: all on one host
//   TORCHELASTIC_RESTART_COUNT  optional; keeps attempts apart in the store
//   GLOO_SOCKET_IFNAME          optional; the network interface to use (of a
//                               list, the first)
//   RANKRUN_PLUGIN_DIR          optional; where to look for backends first
// After Destroy it may be called again, by all ranks equally often.
// Errors: DistError for a bad environment or option, or if there already is a
// world; DistNetworkError if the store cannot be reached or a rank is lost
// on the way; DistTimeoutError naming the ranks that did not come in time;
// DistStoreError, DistBackendError. Nothing is left open after an error. It
// counts as a call for "equally often", unless it was a DistError.
// Thread: any, one at a time.
RANKRUN_API ProcessGroup& Init(const InitOptions& options = {});

// The group that Init made. Throws DistError if there is none.
RANKRUN_API ProcessGroup& World();
RANKRUN_API bool Initialized();

// Closes this rank's connections and ends the library's thread. Waits for
// nobody; ranks that still are in a collective with this one lose it. Does
// nothing if there is no world. References to the group dangle afterwards.
// To be called before main returns. Not while another thread uses the group.
RANKRUN_API void Destroy();

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
