#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/attempt_record.h"
#include "agent/control_server.h"
#include "agent/coordinator.h"
#include "agent/job_spec.h"
#include "base/socket_address.h"
#include "base/uv_stream.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// The coordinator at work: its connections, its clock and its memory.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks.
class CoordinatorHost {
 public:
  struct Callbacks {
    // Must have been done when it returns.
    std::function<void(const CoordinatorRecord&)> keep;
    // Nobody needs it any more.
    std::function<void()> on_retired;
  };

  // `earlier`: what the incarnation before kept. `spec` has nodes and outlives it.
  CoordinatorHost(Loop& loop, const JobSpec& spec, uint64_t own_node,
                  std::optional<CoordinatorRecord> earlier, Callbacks callbacks);
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  // Listens at the endpoint's port. Errors: those of store::ListenOnOnePort.
  Result<void> Listen(uint16_t port) { return server_.Listen(port); }
  uint16_t port() const { return server_.port(); }  // once it listens
  // This host's address by which others came last, if not by loopback.
  const std::optional<SocketAddress>& route() const { return route_; }
  // A connection that came at the store's port instead.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
    server_.Adopt(std::move(stream), first_bytes);
  }

  // Some node has ever come here.
  bool was_used() const { return was_used_; }

 private:
  void OnMessage(PeerId peer, std::string_view bytes);
  void Step(const CoordinatorEvent& event);
  void Act(const Tell& action);
  void Act(const HangUp& action);
  void Act(const Keep& action);
  void Act(const Retire&);
  void Forget(PeerId peer);
  void NoteWho(PeerId peer, const MemberMessage& message);
  void CheckAddresses(PeerId peer, Prepared& message);
  void OnReport(const Report& report);
  void TryMerge();

  // Parts of one attempt's report.
  struct Parts {
    int attempt;
    std::vector<AttemptRecord> records;
  };

  Callbacks callbacks_;
  bool was_used_ = false;
  std::map<PeerId, AddressBytes> peers_;  // from where they came
  std::set<PeerId> done_;                 // whose workers have all succeeded
  std::set<PeerId> reporters_;            // who owe a part
  std::optional<Parts> parts_;
  bool parts_are_late_ = false;  // no more are awaited
  Coordinator core_;
  ControlServer server_;
  std::optional<SocketAddress> route_;
  Timer tick_;
  Timer merge_;
};

}  // namespace rankrun::agent
