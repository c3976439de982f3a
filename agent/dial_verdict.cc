#include "agent/dial_verdict.h"

namespace rankrun::agent {

std::string_view NameOf(DialVerdict verdict) {
  switch (verdict) {
    case DialVerdict::kThisNode:
      return "this node";
    case DialVerdict::kNameLookup:
      return "name look-up";
    case DialVerdict::kNoRoute:
      return "no route";
    case DialVerdict::kFiltered:
      return "filtered";
    case DialVerdict::kRefused:
      return "refused";
    case DialVerdict::kReset:
      return "reset";
    case DialVerdict::kNotRankrun:
      return "not rankrun";
    case DialVerdict::kOtherVersion:
      return "other version";
    case DialVerdict::kOtherJob:
      return "other job";
    case DialVerdict::kWrongSecret:
      return "wrong secret";
  }
  return "";
}

std::string DialFailure::ToString() const {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  std::string text = is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host;
  text += ":" + std::to_string(endpoint.port);
  if (!address.empty() && address != text) text += " (" + address + ")";
  return text + ": " + why;
}

}  // namespace rankrun::agent
