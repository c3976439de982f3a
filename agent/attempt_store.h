#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/job_spec.h"
#include "base/result.h"
#include "store/server.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// The store in which the workers of an attempt meet.
// Thread: loop.
class AttemptStore {
 public:
  // `loop` and `spec` outlive it.
  AttemptStore(Loop& loop, const JobSpec& spec) : loop_(loop), spec_(spec) {}
  AttemptStore(const AttemptStore&) = delete;
  AttemptStore& operator=(const AttemptStore&) = delete;

  // Looks up the addresses, which may block for long, and listens.
  // Errors: kInvalid for what the user typed, kSystem.
  Result<void> Open();

  // For the next attempt: an empty one. A port that the user typed stays; else
  // the attempt gets its own, so that stragglers of the last one cannot find it.
  void Renew();

  void Close() { server_.reset(); }
  uint16_t port() const { return server_->port(); }

 private:
  Result<void> FindAddresses();
  Result<void> Listen();

  Loop& loop_;
  const JobSpec& spec_;
  std::vector<store::BindAddress> addresses_;
  std::unique_ptr<store::Server> server_;
};

}  // namespace rankrun::agent
