#pragma once

#include <gloo/context.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/core/schedule_backend.h"
#include "comm/gloo/collective_monitor.h"
#include "comm/gloo/exchange.h"
#include "comm/gloo/failure_board.h"
#include "comm/gloo/mesh.h"
#include "comm/gloo/messages.h"
#include "comm/gloo/wake_event.h"

namespace rankrun::comm::gloo {

// Collectives and messages over Gloo's connections, for CPU memory. Owns a Gloo
// context with one socket per peer and one thread, and a monitor thread.
// Converts all exceptions of Gloo to errors.
// Source: Gloo (github.com/facebookincubator/gloo), Debian's git20220518.
class GlooBackend final : public ScheduleBackend {
 public:
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);
  ~GlooBackend() override;

  Result<void> Conclude(const Call& call) override;
  bool Refuse(const Call& call, const std::string& reason) override;
  std::optional<Error> FindFailure(TimePoint since) override {
    return failure_board_.FindFailure(since);
  }
  void Abort(const std::string& reason) override;

  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  GlooBackend(const BackendConfig& config, Mesh mesh);

  // Compares the sizes first if they may be uneven.
  Result<void> RunSchedule(const Call& call, const Schedule& schedule, const Blocks& blocks,
                           bool may_be_uneven) override;
  void RunSteps(const Schedule& schedule, const Blocks& blocks);
  void CheckCall(const Call& call);
  void CheckSizes(const Call& call, const Schedule& schedule, const Blocks& blocks);
  void Disconnect();
  // Fails the group with `why`, and the other ranks with `for_others`. Only the
  // first call has an effect; later calls return when the first one is done.
  void End(const Error& why, const Error& for_others);
  std::string OwnName() const;
  void Monitor();

  const std::vector<int> global_ranks_;
  const bool checks_all_calls_;
  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  const std::unique_ptr<Control> control_;
  FailureBoard failure_board_;
  WakeEvent wake_event_;
  CollectiveMonitor monitor_;
  Messages messages_;
  GlooExchange exchange_;
  Executor executor_{exchange_};
  Mutex end_mutex_;
  bool ended_ GUARDED_BY(end_mutex_) = false;
  std::atomic<bool> leaving_ = false;
  std::thread monitor_thread_;
};

}  // namespace rankrun::comm::gloo
