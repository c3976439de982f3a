#pragma once

#include <string>

#include "agent/nodes_spec.h"

namespace rankrun::agent {

// What a try to reach a coordinator came to: the further down, the nearer it was.
enum class DialVerdict {
  kThisNode,      // has no descriptors or memory left for it
  kNameLookup,    // the name has no address
  kNoRoute,       // from here to there
  kFiltered,      // nothing came back
  kRefused,       // nothing listens there
  kReset,         // broken while it was opened
  kNotRankrun,    // something else answers
  kOtherVersion,  // a rankrun with another protocol
  kOtherJob,
  kWrongSecret,  // or only one of both has one
};

// A rankrun is there, and says that this node is not to come in.
constexpr bool IsRefusal(DialVerdict verdict) { return verdict > DialVerdict::kNotRankrun; }

// "name look-up", "refused"
std::string_view NameOf(DialVerdict verdict);

struct DialFailure {
  DialVerdict verdict;
  Endpoint endpoint;
  std::string address;  // numeric, with port; empty if there was none
  std::string why;      // "connection refused: nothing listens there"

  // "node-1:29400 (10.0.0.1:29400): <why>"
  std::string ToString() const;
};

}  // namespace rankrun::agent
