#include "agent/control/dial_failure.h"

#include "base/net/host_port.h"

namespace rankrun::agent {

std::string_view NameOf(DialFailureKind kind) {
  switch (kind) {
    case DialFailureKind::kThisNode:
      return "this node";
    case DialFailureKind::kNameLookup:
      return "name look-up";
    case DialFailureKind::kNoRoute:
      return "no route";
    case DialFailureKind::kFiltered:
      return "filtered";
    case DialFailureKind::kRefused:
      return "refused";
    case DialFailureKind::kReset:
      return "reset";
    case DialFailureKind::kNotRankrun:
      return "not rankrun";
    case DialFailureKind::kOtherVersion:
      return "other version";
    case DialFailureKind::kOtherJob:
      return "other job";
    case DialFailureKind::kWrongSecret:
      return "wrong secret";
  }
  return "";
}

std::string DialFailure::ToString() const {
  std::string text = HostPortText(endpoint.host, endpoint.port);
  if (!address.empty() && address != text) text += " (" + address + ")";
  return text + ": " + why;
}

}  // namespace rankrun::agent
