#pragma once

#include <functional>

#include "agent/job/job_spec.h"
#include "base/net/peer_user.h"

namespace rankrun::agent {

// Returns which users of this host may be nodes of the job; empty: all. A job
// with a secret asks for that instead. `spec` has nodes.
inline std::function<bool(uid_t)> AdmittedUsers(const JobSpec& spec) {
  if (!spec.nodes->secret.empty() || !spec.nodes->munge_credential.empty() || spec.store_open) {
    return {};
  }
  return IsOwnUserOrRoot;
}

}  // namespace rankrun::agent
