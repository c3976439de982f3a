#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "comm/core/backend.h"
#include "comm/hierarchy/hosts.h"
#include "comm/hierarchy/representatives.h"
#include "comm/shm/backend.h"
#include "comm/stream/backend.h"

namespace rankrun::comm::hierarchy {

// Collectives of ranks on several hosts: the ranks of a host share memory, and
// one of them represents the host in an exchange over TCP. So each byte crosses
// the network once per host, not once per rank.
//
//   AllReduce   reduce in the host, all-reduce among representatives, broadcast
//   Reduce      reduce in the host, reduce among representatives to the root
//   Broadcast   broadcast among representatives, then in each host
//   AllGather   all-gather in the host, then of the hosts' data, then broadcast
//   Barrier     barrier in the host, among representatives, in the host
//
// The root represents its host, otherwise the first rank does. All other
// collectives and all messages go over TCP between the ranks themselves. They
// begin with a barrier in the host, so that a difference between calls is found
// there, too.
class HierarchicalBackend final : public Backend, private shm::ProgressHook {
 public:
  // Errors: those of the backends for shared memory and TCP.
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);

  Result<void> Run(const Collective& collective, const Call& call) override;
  bool IsInterruptible() const override { return true; }
  Result<void> Conclude(const Call& call) override;
  bool Refuse(const Call& call, const std::string& reason) override;
  std::optional<Error> FindFailure(TimePoint since) override { return tcp_->FindFailure(since); }
  void Abort(const std::string& reason) override;
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  // A collective in parts, which share its time-out.
  struct Parts {
    const Call& call;
    TimePoint deadline;
    int own;  // index of this rank among the ranks of its host
    // Returns the call of a part, for the time that is left.
    Call Part() const;
    // The same for a part in the host that follows the one among the hosts. The
    // ranks other than the representative wait longer, so that it explains a time-out.
    Call AfterHosts(int representative) const;
  };

  HierarchicalBackend(Hosts hosts, std::unique_ptr<stream::StreamBackend> tcp)
      : hosts_(std::move(hosts)), tcp_(std::move(tcp)) {}

  // Called while this rank waits in its host: answers peers elsewhere, and ends
  // the wait if the group has ended there.
  bool Move() override;
  Result<void> RunParts(const Collective& collective, const Parts& parts);
  // Runs the part among the hosts if this rank represents its host. `part` has the program's root.
  Result<void> AmongHosts(Collective part, const Parts& parts);
  Result<void> AllReduce(const Collective& collective, const Parts& parts);
  Result<void> AllReduceChunk(Block chunk, const Reduction& reduction, const Parts& parts);
  Result<void> Reduce(const Collective& collective, const Parts& parts);
  Result<void> Broadcast(const Collective& collective, const Parts& parts);
  // Runs the part in the host that follows the one among the hosts.
  Result<void> BroadcastInHost(Block data, int representative, const Parts& parts);
  Result<void> AllGather(const Collective& collective, const Parts& parts);
  Result<void> GatherAmongHosts(std::span<const Block> outputs, const Parts& parts);
  Result<void> Barrier(const Parts& parts);
  int RepresentativeInHost(int root) const;
  Error Failed(const Call& call, const Error& error);

  const Hosts hosts_;
  const std::unique_ptr<stream::StreamBackend> tcp_;
  std::unique_ptr<shm::ShmBackend> shm_;  // set by Create; its waits use this object
  TimePoint began_ = {};                  // of the call under way
  uint64_t number_ = 0;                   // of that call
};

}  // namespace rankrun::comm::hierarchy
