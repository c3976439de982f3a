#pragma once

#include <gloo/context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "comm/backend.h"
#include "comm/gloo/gloo_executor.h"
#include "comm/gloo/gloo_mesh.h"
#include "comm/gloo/gloo_messages.h"
#include "comm/gloo/gloo_notes.h"
#include "comm/gloo/gloo_watch.h"
#include "comm/gloo/wakeup.h"

namespace rankrun::comm {

// Collectives and messages over Gloo's connections, CPU memory only. Owns a
// Gloo context, which has a socket per peer and one thread, and one thread more.
// No exception of Gloo's leaves it.
// Source: Gloo (github.com/facebookincubator/gloo), Debian's git20220518.
class GlooBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);
  ~GlooBackend() override;

  Result<void> AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                         const Call& call) override;
  Result<void> Reduce(std::byte* output, const std::byte* input, std::size_t count,
                      const Reduction& reduction, const Call& call) override;
  Result<void> Broadcast(Block data, const Call& call) override;
  Result<void> AllGather(std::span<const Block> outputs, ConstBlock input,
                         const Call& call) override;
  Result<void> Gather(std::span<const Block> outputs, ConstBlock input, const Call& call) override;
  Result<void> Scatter(Block output, std::span<const ConstBlock> inputs, const Call& call) override;
  Result<void> ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                             const Reduction& reduction, const Call& call) override;
  Result<void> AllToAll(std::span<const Block> outputs, std::span<const ConstBlock> inputs,
                        const Call& call) override;
  Result<void> Barrier(const Call& call) override;

  bool Refuse(const Call& call, const std::string& reason) override;
  void Abort(const std::string& reason) override;

  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  GlooBackend(const BackendConfig& config, Mesh mesh);

  Seat SeatIn(const Call& call) const;
  // Runs `body`, which throws Ended, as one operation.
  Result<void> Perform(const Call& call, const std::function<void()>& body);
  Result<void> Run(const Call& call, const Schedule& schedule, const Blocks& blocks);
  // The same, when other ranks' sizes are their own affair.
  Result<void> RunUneven(const Call& call, const Schedule& schedule, const Blocks& blocks);
  // What has no data on any rank is still a call that all ranks have to make.
  Result<void> RunEmpty(const Call& call);
  void CheckCall(const Call& call);
  void Disconnect();
  // The others are told another reason, if it is not theirs as well. Only the
  // first call ends anything; the others return when it is done.
  void End(const Error& why, const Error& for_others);
  std::string OwnName() const;
  void Attend();

  const std::vector<int> global_ranks_;
  const bool checks_all_calls_;
  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  const std::unique_ptr<Control> control_;
  Notes notes_;
  Wakeup wakeup_;
  Watch watch_;
  Messages messages_;
  Executor executor_;
  std::mutex end_mutex_;
  bool ended_ = false;
  std::atomic<bool> leaving_ = false;
  std::thread attendant_;
};

}  // namespace rankrun::comm
