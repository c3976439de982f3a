#include <unistd.h>

#include <cstdio>
#include <utility>

#include <rankrun/c/spawn.h>
#include <rankrun/spawn.h>

#include "comm/c/c_guard.h"

using rankrun::comm::Guarded;
using rankrun::comm::NotNull;
using rankrun::comm::ThrowInvalid;
using rankrun::comm::TimeoutOf;

struct rankrun_spawn_context {
  rankrun::SpawnContext context;
};

extern "C" {

rankrun_status rankrun_spawn(rankrun_spawn_function function, void* data, int32_t processes,
                             rankrun_spawn_context** context) {
  return Guarded([&] {
    if (context != nullptr) *context = nullptr;
    if (function == nullptr) ThrowInvalid("function is NULL");
    auto run = [=](int rank) {
      int exit_code = function(rank, data);
      if (exit_code == 0) return;
      std::fflush(nullptr);
      constexpr int kBits = 0xff;  // of an exit code
      _exit((exit_code & kBits) != 0 ? exit_code & kBits : 1);
    };
    auto made = rankrun::Spawn(run, processes, /*join=*/context == nullptr);
    if (context != nullptr) *context = new rankrun_spawn_context{std::move(made)};
  });
}

rankrun_status rankrun_spawn_join(rankrun_spawn_context* context, int64_t timeout_ms,
                                  int64_t grace_ms, int* all_ended) {
  return Guarded([&] {
    NotNull(all_ended, "all_ended");
    bool ended =
        NotNull(context, "context").context.Join(TimeoutOf(timeout_ms), TimeoutOf(grace_ms));
    *all_ended = ended ? 1 : 0;
  });
}

rankrun_status rankrun_spawn_pid(const rankrun_spawn_context* context, int rank, int32_t* pid) {
  return Guarded([&] {
    NotNull(pid, "pid");
    std::vector<pid_t> pids = NotNull(context, "context").context.pids();
    if (rank < 0 || static_cast<size_t>(rank) >= pids.size()) {
      ThrowInvalid("rank is " + std::to_string(rank) + ": want 0 to " +
                   std::to_string(pids.size() - 1));
    }
    *pid = pids[static_cast<size_t>(rank)];
  });
}

void rankrun_spawn_release(rankrun_spawn_context* context) { delete context; }

}  // extern "C"
