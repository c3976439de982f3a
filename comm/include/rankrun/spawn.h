#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>

// Runs a function in new processes of this program: the counterpart of
// torch.multiprocessing.spawn.
//
//   rankrun::Spawn([](int rank) {
//     rankrun::Init({.init_method = "file:///tmp/meet", .rank = rank, .world_size = 4});
//     Train();
//     rankrun::Destroy();
//   }, 4);
//
// The processes are forks of the caller, so `function` has all its data. Connections
// and open files are shared, too: a TcpStore that the caller has made sends on one
// socket from all processes, so make one in `function`, or use Store::Clone there. A
// fork has none of the caller's threads and cannot use its GPUs. Call Spawn before the
// program starts a thread, uses a GPU or makes a process group; later, start the
// program again by OwnProgram (launch.h).
namespace rankrun {

// End of a process that has failed.
struct SpawnFailure {
  int rank = 0;
  pid_t pid = 0;
  std::optional<int> exit_code = {};  // 1 after an exception; unless a signal killed it, or
                                      // the caller ignores SIGCHLD
  std::optional<int> signal = {};     // that killed it
  std::string exception = {};         // "std::runtime_error: no data"; empty: it threw none
};

// A process has failed. what() has its rank, its pid and the reason.
class RANKRUN_API SpawnError : public DistError {
 public:
  explicit SpawnError(SpawnFailure failure);
  ~SpawnError() override;

  const SpawnFailure& failure() const { return failure_; }

 private:
  SpawnFailure failure_;
};

// Processes that Spawn has started. They end with the calling process, however
// it ends (PDEATHSIG).
// Thread: one at a time.
class RANKRUN_API SpawnContext {
 public:
  SpawnContext(SpawnContext&& other) noexcept;
  SpawnContext& operator=(SpawnContext&& other) noexcept;
  // Ends processes that still run: SIGTERM, and SIGKILL after 30 s.
  ~SpawnContext();

  // Waits for all processes. Returns whether all have ended, false after `timeout`;
  // no value: without a limit.
  // When one fails, the others get `grace` to end by themselves (no value: none),
  // then SIGTERM, and SIGKILL after `grace` (no value: 30 s). Then it throws
  // SpawnError for the first that failed, and so do later calls. If several failed
  // within 200 ms, one that did not lose a connection to another counts as first.
  bool Join(std::optional<std::chrono::milliseconds> timeout = {},
            std::optional<std::chrono::milliseconds> grace = {});

  std::vector<pid_t> pids() const;  // by rank, also of those that have ended

 private:
  friend RANKRUN_API SpawnContext Spawn(const std::function<void(int rank)>& function,
                                        int processes, bool join);
  struct State;
  explicit SpawnContext(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Starts processes that run function(0), function(1), ... and end. With `join`
// waits for all of them, as Join does; otherwise returns at once.
// A process ends with code 0 when `function` returns, and with code 1 after an
// exception. It runs no destructors of the caller's objects. It has the caller's
// signal handlers, except that SIGTERM ends it.
// Throws DistError if `processes` is below 1, or if this process has other
// threads, a GPU in use, or a world process group. Throws DistBackendError if the
// machine could not start all; none runs then. With `join`, throws as Join does.
RANKRUN_API SpawnContext Spawn(const std::function<void(int rank)>& function, int processes = 1,
                               bool join = true);

}  // namespace rankrun
