#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "agent/control/control_dial.h"
#include "agent/coordination/liveness_watch.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Dials the liveness ports of nodes as LivenessWatch decides.
// Thread: loop.  Lifetime: may not end inside one of its callbacks.
class NodeProber {
 public:
  struct Callbacks {
    std::function<bool(uint64_t node)> is_wanted;  // a node that is not is forgotten
    std::function<void(const NodeGone&)> on_gone;
  };

  NodeProber(Loop& loop, std::chrono::milliseconds node_timeout, Callbacks callbacks);
  NodeProber(const NodeProber&) = delete;
  NodeProber& operator=(const NodeProber&) = delete;

  // As LivenessWatch. None of them calls a callback.
  void OnHello(uint64_t node, const Endpoint& target);
  void OnMessage(uint64_t node);
  void OnBroken(uint64_t node);

 private:
  void Continue();
  void Arm();
  void OnDialled(uint64_t number, const DialResult& result);

  Loop& loop_;
  const Callbacks callbacks_;
  LivenessWatch watch_;
  std::map<uint64_t, std::unique_ptr<ControlDial>> dials_;  // by number
  std::vector<std::unique_ptr<ControlDial>> ended_;  // must not be destroyed in their callbacks
  Timer timer_;
};

}  // namespace rankrun::agent
