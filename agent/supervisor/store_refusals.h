#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/server/server_options.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Requests that the store of an attempt refused because of a limit. Finds the rank of this node
// that made a request: the store knows the port of its client, and /proc the process with that
// port.
// Thread: loop.  Lifetime: may end at any time; searches that are under way are then dropped.
class StoreRefusals {
 public:
  using Refusal = store::ServerOptions::Refusal;
  // Returns the global rank of a worker; nothing for any other process.
  using RankOf = std::function<std::optional<int>(pid_t worker)>;

  StoreRefusals(Loop& loop, RankOf rank_of)
      : loop_(loop), rank_of_(std::move(rank_of)), self_(std::make_shared<StoreRefusals*>(this)) {}
  StoreRefusals(const StoreRefusals&) = delete;
  StoreRefusals& operator=(const StoreRefusals&) = delete;
  ~StoreRefusals() { *self_ = nullptr; }

  // Logs a refusal of the store at `port` once its rank is known or cannot be found. Passes the
  // text with the rank to `done`.
  void Note(Refusal refusal, uint16_t port, std::function<void(const std::string& why)> done);

  // Returns the first few refusals since the last call, for the report.
  std::vector<std::string> Take() { return std::exchange(texts_, {}); }

 private:
  void OnFound(const Refusal& refusal, pid_t worker,
               const std::function<void(const std::string&)>&);

  Loop& loop_;
  const RankOf rank_of_;
  std::vector<std::string> texts_;
  std::shared_ptr<StoreRefusals*> self_;  // shared with searches; null once this object is gone
};

}  // namespace rankrun::agent
