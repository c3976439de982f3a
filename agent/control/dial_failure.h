#pragma once

#include <string>

#include "agent/job/nodes_spec.h"

namespace rankrun::agent {

// Result of a failed attempt to reach a coordinator. Later values got nearer to
// it.
enum class DialFailureKind {
  kThisNode,      // this node lacks descriptors or memory
  kNameLookup,    // the name has no address
  kNoRoute,       // no route to the host
  kFiltered,      // no answer
  kRefused,       // nothing listens there
  kReset,         // the connection broke during the handshake
  kNotRankrun,    // another program answers
  kOtherVersion,  // a rankrun with another protocol answers
  kOtherJob,
  kWrongSecret,  // also if only one side has a secret
};

// Returns whether a rankrun answers but refuses this node.
constexpr bool IsRefusal(DialFailureKind kind) { return kind > DialFailureKind::kNotRankrun; }

// Returns "name look-up", "refused", ...
std::string_view NameOf(DialFailureKind kind);

struct DialFailure {
  DialFailureKind kind;
  Endpoint endpoint;
  std::string address;  // numeric, with port; empty if the name has none
  std::string why;      // "connection refused: nothing listens there"

  // Returns "node-1:29400 (10.0.0.1:29400): <why>".
  std::string ToString() const;
};

}  // namespace rankrun::agent
