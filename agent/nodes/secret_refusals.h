#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"

namespace rankrun::agent {

// Recognises a job that cannot form, because each of its other nodes was refused for its secret:
// the nodes have homes of their own, and each has made a secret. Anybody may claim to be such a
// node, so some time remains for a node with the right secret. Pure.
class SecretRefusals {
 public:
  // `others`: number of nodes besides this one that the job needs; 0: nothing is recognised.
  // `patience`: time after the refusal of the last of them.
  SecretRefusals(size_t others, Duration patience) : others_(others), patience_(patience) {}

  // A node that claims this name was refused. A node that starts again has another id.
  void OnRefused(const std::string& node_name, TimePoint now);
  // A node with the right secret is there.
  void OnJoined();
  // Returns the time at which the job is given up unless another node has joined.
  std::optional<TimePoint> deadline() const { return deadline_; }

 private:
  const size_t others_;
  const Duration patience_;
  std::set<std::string> nodes_;  // names, at most `others_`
  std::optional<TimePoint> deadline_;
};

}  // namespace rankrun::agent
