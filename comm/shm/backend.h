#pragma once

#include <memory>
#include <vector>

#include "comm/core/backend.h"
#include "comm/shm/call_rendezvous.h"
#include "comm/shm/executor.h"
#include "comm/shm/messages.h"
#include "comm/shm/relay.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm::shm {

// Collectives between processes of one host through shared memory. Reductions
// follow the order of ranks, so results have the same bits on all ranks.
// AllReduce, Reduce and Broadcast below 4 KiB exchange their data together with
// the call. Larger data goes through bounce buffers in rounds (schedule.h). Up to one chunk, the
// rendezvous of the call is the only wait, except in two-phase reductions.
class ShmBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);
  // `beside`: more work that waiting ranks continue; may be null.
  static Result<std::unique_ptr<ShmBackend>> CreateShm(const BackendConfig& config,
                                                       ProgressHook* beside);

  // Returns whether `relay` takes as many bytes, and is the fastest way.
  bool Relays(size_t bytes) const;
  Relay& relay() { return relay_; }
  // Ends the group as Abort does, with this error on all ranks.
  void Fail(const Error& error);

  Result<void> Run(const Collective& collective, const Call& call) override;
  bool IsInterruptible() const override { return true; }
  Result<void> Conclude(const Call& call) override {
    return segment_->errors().Conclude(call.operation.number);
  }
  bool Refuse(const Call& call, const std::string& reason) override;
  std::optional<Error> FindFailure(TimePoint since) override { return waiter_.FindFailure(since); }
  void Abort(const std::string& reason) override;
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  // Continues the messages of this group and the work beside it.
  struct AllProgress final : ProgressHook {
    AllProgress(ProgressHook& of_messages, ProgressHook* of_others)
        : messages(of_messages), beside(of_others) {}
    bool Move() override {
      bool more = messages.Move();
      return (beside != nullptr && beside->Move()) || more;
    }
    ProgressHook& messages;
    ProgressHook* const beside;
  };

  ShmBackend(const BackendConfig& config, std::unique_ptr<Segment> segment, ProgressHook* beside);

  // Each rank shows its input with its call. `has_result`: this rank writes the output.
  Result<void> ShowAndReduce(const Collective& collective, bool has_result, const Call& call);
  Result<void> ShowAndBroadcast(const Collective& collective, const Call& call);
  Result<void> Meet(const Call& call);

  const std::unique_ptr<Segment> segment_;
  Messages messages_;
  AllProgress progress_;
  Waiter waiter_;
  CallRendezvous calls_;
  Executor executor_;
  Relay relay_;
  std::vector<const void*> parts_;  // by rank
};

}  // namespace rankrun::comm::shm
