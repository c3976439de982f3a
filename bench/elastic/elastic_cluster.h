#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process/spawn.h"
#include "bench/elastic/elastic_log.h"

namespace rankrun::bench {

constexpr int kWorkersPerNode = 2;

struct Launcher {
  std::string name;
  std::string program;
  bool has_guardian;   // the agent is a child of the started process
  std::string worker;  // program
};

// A job of several nodes on this machine, each with its own launcher. The
// destructor ends all descendants. This process must be a subreaper.
class Cluster {
 public:
  // `flags`: flags of all nodes.
  Cluster(const Launcher& launcher, std::vector<std::string> flags);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  // Starts a node, named by a letter. All nodes rendezvous at the launcher of
  // A. Returns the time before the exec.
  int64_t Start(char node);
  int64_t KillAgent(char node);
  // Kills the whole launcher; its workers are then unsupervised.
  int64_t Kill(char node);
  int64_t KillWorker(char node);
  // Stops all processes of the node, as if its host had frozen.
  int64_t Freeze(char node);

  // Returns when the last of `count` workers of `nodes` recorded `kind` after
  // `since`; nothing if that takes more than `limit` milliseconds.
  std::optional<int64_t> Await(ElasticLog::Kind kind, const std::string& nodes, int64_t since,
                               int limit);
  // Returns when all workers of `nodes` reached main() after `since`.
  std::optional<int64_t> AwaitAttempt(const std::string& nodes, int64_t since, int limit) {
    return Await(ElasticLog::kInMain, nodes, since, limit);
  }
  int overlaps() const { return log_->overlaps; }

 private:
  struct Node {
    SpawnedProcess process;
    pid_t agent() const;
    bool has_guardian;
  };
  int64_t Signal(char node, int number);
  pid_t WorkerOf(char node) const;

  const Launcher launcher_;
  const std::vector<std::string> flags_;
  const std::string path_;
  ElasticLog* const log_;
  const Fd null_;
  std::map<char, Node> nodes_;
};

}  // namespace rankrun::bench
