#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/coordination/relay.h"
#include "agent/job/job_spec.h"
#include "agent/supervisor/store_refusals.h"
#include "base/clock.h"
#include "base/net/peer_user.h"
#include "base/result.h"
#include "base/uv/uv_timer.h"
#include "store/server/server.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Returns the memory that this process may use: that of the machine, or of its
// cgroup. The kernel's files are below `root`.
size_t UsableMemory(const std::string& root = "");

// Returns the limit of the store's keys and values, and of its requests and
// replies under way: an eighth of the memory that is usable, 4 GiB at most, so
// that a client can neither fill the machine nor have the agent killed. At least
// two values of the largest size.
size_t StoreMemory(size_t usable, size_t max_value);

// The key-value store of an attempt, in which its workers find each other.
// Thread: loop.
class AttemptStore {
 public:
  // `loop` and `spec` outlive this object.
  AttemptStore(Loop& loop, const JobSpec& spec, StoreRefusals::RankOf rank_of)
      : loop_(loop),
        spec_(spec),
        memory_timer_(loop, [this] { LimitMemory(); }),
        refusals_(loop, std::move(rank_of)) {}
  AttemptStore(const AttemptStore&) = delete;
  AttemptStore& operator=(const AttemptStore&) = delete;

  // Looks up the addresses, which may block for long, and listens. In a job of
  // several nodes it listens only if the coordinator shares the port. `control`
  // then gets the connections to the coordinator.
  // Errors: kInvalid for an address or port that the user typed, kSystem.
  Result<void> Open(store::ServerOptions::Control control = {});

  // Provides an empty store for the next attempt of a job of one node; returns its port. A
  // port that the user typed stays. Any other port changes, so that processes of the
  // previous attempt cannot reach the store.
  uint16_t OpenForAttempt();

  // Opens an empty store on this node of a job of several; returns its port. The
  // requests of its clients wait until AdmitOnly.
  Result<uint16_t> OpenForRound();

  // Admits only connections from the numeric addresses `clients` and from this
  // host, until the next round. Admits all if `clients` is empty.
  void AdmitOnly(const std::vector<std::string>& clients);

  // Admits clients of other nodes only if `ask` vouches for them: OnVerdict has to follow, later.
  // Call it before Open; it has no effect without a secret, which the other nodes have proved.
  void AskForClients(std::function<void(StoreClient)> ask) { ask_ = std::move(ask); }
  void OnVerdict(const ClientVerdict& verdict);
  // An attempt begins, on any node: the users of the workers are to be searched for again.
  void ForgetWorkers();
  // Says which clients on this host may use the store of another node.
  ClientVerdicts Judge(const WhoseClients& question);

  // Returns the names for which programs wait, with the ports of the clients.
  std::vector<std::pair<std::string, uint16_t>> Waits() const;

  // Requests that have changed something; 0 if this node hosts no store.
  uint64_t Changes() const { return server_ ? server_->changes() : 0; }

  // Returns the refused requests of this attempt: `rank 3: SET of key "model" ...`.
  std::vector<std::string> TakeRefusals() { return refusals_.Take(); }

  void Close() {
    server_.reset();
    asked_.clear();
  }
  // Nothing if this node hosts no store.
  std::optional<store::ServerStats> Stats() const {
    return server_ ? std::optional(server_->Stats()) : std::nullopt;
  }
  uint16_t port() const { return server_->port(); }

 private:
  bool SharesPort() const;
  Result<void> FindAddresses();
  Result<void> Listen();
  void Renew();
  bool Admits(uid_t user);
  void LimitMemory();
  void OnRefusal(store::ServerOptions::Refusal refusal);
  bool HasSecret() const;
  void Ask(const store::ServerOptions::RemoteClient& client);

  Loop& loop_;
  const JobSpec& spec_;
  store::ServerOptions::Control control_;
  std::vector<store::BindAddress> addresses_;
  std::unique_ptr<store::Server> server_;
  bool was_used_ = false;         // by an attempt on one node
  std::set<uid_t> worker_users_;  // as of the latest search
  TimePoint next_search_{};
  size_t usable_memory_ = 0;  // in bytes; 0: not known yet
  Timer memory_timer_;
  StoreRefusals refusals_;
  PeerUsers peer_users_;
  std::function<void(StoreClient)> ask_;
  std::map<uint64_t, uint64_t> asked_;  // connections of server_, by the numbers of the questions
  uint64_t last_question_ = 0;
};

}  // namespace rankrun::agent
