#pragma once

#include <chrono>

#include "agent/restart_policy.h"

namespace rankrun::agent {

// What worker_group goes by.
struct GroupPolicy {
  int workers = 1;
  RestartPolicy restart{};
  std::chrono::milliseconds shutdown_timeout{25'000};  // from the signal to SIGKILL
  std::chrono::milliseconds save_timeout{0};       // the same for a worker that saves, if longer
  std::chrono::milliseconds sweep_timeout{1'000};  // the same for what is left behind
  // From SIGKILL to TellStuck; 0: never.
  std::chrono::milliseconds stuck_timeout{0};
  bool continue_on_failure = false;  // a failure does not end the others
  bool is_commanded = false;  // attempts, restarts and the end come by the coordinator's word
};

}  // namespace rankrun::agent
