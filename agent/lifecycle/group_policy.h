#pragma once

#include <chrono>

namespace rankrun::agent {

// Settings of worker_group.
struct GroupPolicy {
  int workers = 1;
  std::chrono::milliseconds shutdown_timeout{25'000};  // from the signal to SIGKILL
  std::chrono::milliseconds save_timeout{0};           // the same while a worker saves, if longer
  std::chrono::milliseconds sweep_timeout{1'000};      // the same for leftover processes
  // From SIGKILL to ReportStuck; 0: never.
  std::chrono::milliseconds stuck_timeout{0};
  bool continue_on_failure = false;  // a failed worker does not stop the others
  // From the end of a worker that may be the victim of another one to the stop of the others,
  // which may say the cause until then.
  std::chrono::milliseconds victim_grace{0};
  bool is_one_of_several = false;  // nodes; workers on another one may say the cause, too
};

}  // namespace rankrun::agent
