#pragma once

#include <cstdint>
#include <memory>
#include <string>
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

  // Looks up the addresses, which may block for long, and listens; in a job of
  // several nodes only if the coordinator shares the port, which then gets its
  // connections by `control`. Errors: kInvalid for what the user typed, kSystem.
  Result<void> Open(store::ServerOptions::Control control = {});

  // In a job of several nodes: an empty store on this node; returns its port.
  Result<uint16_t> OpenForRound();

  // Until the next round: connections from the numeric addresses `clients` and
  // from this host; empty: from everywhere.
  void AdmitOnly(const std::vector<std::string>& clients);

  // For the next attempt: an empty one. A port that the user typed stays; else
  // the attempt gets its own, so that stragglers of the last one cannot find it.
  void Renew();

  void Close() { server_.reset(); }
  uint16_t port() const { return server_->port(); }

 private:
  bool SharesPort() const;
  Result<void> FindAddresses();
  Result<void> Listen();

  Loop& loop_;
  const JobSpec& spec_;
  store::ServerOptions::Control control_;
  std::vector<store::BindAddress> addresses_;
  std::unique_ptr<store::Server> server_;
};

}  // namespace rankrun::agent
