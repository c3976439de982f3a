#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/core/schedule_backend.h"
#include "comm/stream/connection.h"
#include "comm/stream/control.h"
#include "comm/stream/exchange.h"
#include "comm/stream/messages.h"
#include "comm/stream/own_collectives.h"
#include "comm/stream/patience.h"

namespace rankrun::comm::stream {

// Collectives and messages over connections between all pairs of ranks, for CPU
// memory. The caller's thread moves all data, so a group needs no thread.
class StreamBackend final : public ScheduleBackend {
 public:
  // `peers`: by group rank; that of this rank is empty. Each peer has the same
  // number of data connections, at least one. `ranks_here`: ranks of the group
  // on this host, with this one. `own`: asked before the schedules; may be null.
  StreamBackend(const BackendConfig& config, std::vector<PeerConnections> peers, int ranks_here,
                std::unique_ptr<OwnCollectives> own = nullptr);
  ~StreamBackend() override;

  Result<void> Run(const Collective& collective, const Call& call) override {
    if (own_ != nullptr && own_->Takes(collective, call)) return RunOwn(collective, call);
    return ScheduleBackend::Run(collective, call);
  }
  bool IsInterruptible() const override { return own_ == nullptr; }
  Result<void> Conclude(const Call& call) override;
  bool Refuse(const Call& call, const std::string& reason) override;
  // Also answers peers.
  std::optional<Error> FindFailure(TimePoint since) override {
    return FindFailureIn(Control::kAllCalls, since);
  }
  // The same for a wait of a call, whose peers may fail in later calls.
  std::optional<Error> FindFailureIn(uint64_t call, TimePoint since);
  void Abort(const std::string& reason) override;

  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override {
    return messages_.StartSend(data, destination, envelope);
  }
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override {
    return messages_.StartRecv(data, source, envelope);
  }

  int group_rank() const { return rank(); }
  using ScheduleBackend::algorithms;
  // Runs a collective among some of the ranks, as a part of the call that was announced.
  Result<void> RunPart(const Call& call, const Schedule& schedule, const Blocks& blocks);
  // Begins a call that this backend may carry out in part: peers that ask get to
  // know it. Compares the calls of all ranks if the debug level is DETAIL.
  Result<void> Announce(const Call& call);
  // Returns the calls of all ranks, or empty if they are alike as far as known.
  std::string CompareCalls(const Call& call) {
    return control_.CompareCalls(call.operation.number);
  }
  // Ends the group as Abort does, with this error on all ranks.
  void Fail(const Error& error);

 private:
  struct Streams {
    explicit Streams(std::vector<PeerConnections> peers);

    std::vector<std::unique_ptr<Connection>> control;
    std::vector<std::vector<Stream>> data;
  };
  StreamBackend(const BackendConfig& config, const Patience& patience, Streams streams,
                std::unique_ptr<OwnCollectives> own);

  Result<void> RunSchedule(const Call& call, const Schedule& schedule, const Blocks& blocks,
                           bool may_be_uneven) override;
  Result<void> Execute(const Call& call, const Schedule& schedule, const Blocks& blocks);
  // Runs a collective of the backend's own once the calls of all ranks are compared.
  Result<void> RunOwn(const Collective& collective, const Call& call);
  // Returns the result of a collective; an error ends the group.
  Result<void> Ended(const Call& call, Result<void> result);
  // The same for an error that has begun on this rank.
  Error EndedHere(const Call& call, Error why);
  // Ends the group with `why`; its peers get `for_others`.
  void End(const Error& why, const Error& for_others);

  const bool checks_all_calls_;
  const Patience patience_;
  Control control_;
  Messages messages_;
  StreamExchange exchange_;
  Executor executor_{exchange_};
  const std::vector<int> global_ranks_;
  const DeathWatch deaths_;
  const std::unique_ptr<OwnCollectives> own_;
  Mutex own_mutex_;  // held while own_ touches blocks
  bool own_ended_ GUARDED_BY(own_mutex_) = false;
};

// Returns the number of ranks on this host, with this one, by the hosts in `config`.
int CountRanksHere(const BackendConfig& config);

}  // namespace rankrun::comm::stream
