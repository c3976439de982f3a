#pragma once

#include <string>
#include <utility>
#include <vector>

#include "comm/core/schedule_backend.h"
#include "comm/stream/backend.h"

namespace rankrun::comm::hierarchy {

// The ranks that represent their hosts in one call, as a backend of their own
// over the connections of all ranks. Ranks here are indices of hosts.
class Representatives final : public ScheduleBackend {
 public:
  // `members`: group rank of each representative. `own`: index of this rank.
  Representatives(stream::StreamBackend& tcp, std::vector<int> members, int own)
      : ScheduleBackend(own, static_cast<int>(members.size()), tcp.algorithms()),
        tcp_(tcp),
        members_(std::move(members)) {}

  Result<void> Conclude(const Call& call) override { return tcp_.Conclude(call); }
  bool Refuse(const Call& call, const std::string& reason) override {
    return tcp_.Refuse(call, reason);
  }
  std::optional<Error> FindFailure(TimePoint since) override { return tcp_.FindFailure(since); }
  void Abort(const std::string& reason) override { tcp_.Abort(reason); }
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override {
    return tcp_.StartSend(data, members_[static_cast<size_t>(destination)], envelope);
  }
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override {
    if (source) source = members_[static_cast<size_t>(*source)];
    return tcp_.StartRecv(data, source, envelope);
  }

 private:
  Result<void> RunSchedule(const Call& call, const Schedule& schedule, const Blocks& blocks,
                           bool) override {
    Schedule among_all = schedule;
    for (Step& step : among_all) {
      for (int* peer : {&step.send_to, &step.receive_from}) {
        if (*peer != Step::kNobody) *peer = members_[static_cast<size_t>(*peer)];
      }
    }
    return tcp_.RunPart(call, among_all, blocks);
  }

  stream::StreamBackend& tcp_;
  const std::vector<int> members_;
};

}  // namespace rankrun::comm::hierarchy
