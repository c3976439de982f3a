#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/spawn.h"
#include "bench/elastic_log.h"

namespace rankrun::bench {

constexpr int kWorkersPerNode = 2;

struct Launcher {
  std::string name;
  std::string program;
  bool has_guardian;   // its agent is a child of what is started
  std::string worker;  // program
};

// A job of several nodes on this machine, each one a launcher of its own.
// Ends with all that is below it. The process is to be a subreaper.
class Cluster {
 public:
  // `flags`: those that all nodes have.
  Cluster(const Launcher& launcher, std::vector<std::string> flags);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  // Starts a node; its name is a letter, A's launcher is where all meet.
  // Returns when: before the exec.
  int64_t Start(char node);
  int64_t KillAgent(char node);
  // The whole of the launcher; of its workers nobody takes care any more.
  int64_t Kill(char node);
  int64_t KillWorker(char node);
  // As if the host had frozen.
  int64_t Freeze(char node);

  // When the last of `count` workers of `nodes` got there, after `since`;
  // nothing within `limit` milliseconds.
  std::optional<int64_t> Await(ElasticLog::Kind kind, const std::string& nodes, int64_t since,
                               int limit);
  // All of `nodes` are in main() after `since`.
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
