#pragma once

#include <optional>

#include "agent/coordination/member_events.h"
#include "base/clock.h"

namespace rankrun::agent {

// Decides when a request (LeaveWanted, CloseWanted) reaches the member. A node that hosts the
// coordinator has to join first: the coordinator must get the request before this agent ends,
// because other nodes may depend on the coordinator. Pure: no clock, no I/O.
class PostponedRequest {
 public:
  // `limit`: longest delay.
  explicit PostponedRequest(Duration limit) : limit_(limit) {}

  // Each returns the request for the member, if it is due. While one is postponed, further ones
  // are dropped.
  // `is_joining`: no message of the coordinator has arrived.
  std::optional<MemberEvent> OnRequest(const MemberEvent& request, bool is_hosting, bool is_joining,
                                       TimePoint now);
  std::optional<MemberEvent> OnMessage();  // of the coordinator
  std::optional<MemberEvent> OnTick(TimePoint now);

  // Time of the next OnTick.
  std::optional<TimePoint> deadline() const { return deadline_; }

 private:
  const Duration limit_;
  std::optional<MemberEvent> request_;
  std::optional<TimePoint> deadline_;
};

}  // namespace rankrun::agent
