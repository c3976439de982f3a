#include "agent/coordination/postponed_request.h"

#include <utility>

namespace rankrun::agent {

std::optional<MemberEvent> PostponedRequest::OnRequest(const MemberEvent& request, bool is_hosting,
                                                       bool is_joining, TimePoint now) {
  if (!is_hosting || !is_joining) return request;
  if (request_) return std::nullopt;
  request_ = request;
  deadline_ = now + limit_;
  return std::nullopt;
}

std::optional<MemberEvent> PostponedRequest::OnMessage() {
  deadline_.reset();
  return std::exchange(request_, std::nullopt);
}

std::optional<MemberEvent> PostponedRequest::OnTick(TimePoint now) {
  if (!deadline_ || now < *deadline_) return std::nullopt;
  return OnMessage();
}

}  // namespace rankrun::agent
