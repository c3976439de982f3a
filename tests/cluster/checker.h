#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/job/node_place.h"
#include "agent/report/attempt_record.h"
#include "base/clock.h"

namespace rankrun::cluster {

constexpr int kWorkersPerNode = 2;

// Returns the text of the cause that a node tells: "rank 4 failed".
std::string RankFailed(int rank);

// Checks from outside that the nodes of a job agree.
class Checker {
 public:
  // Only workers fail, so that each report names a worker.
  void ExpectWorkersOnly() { has_only_workers_ = true; }
  // A node starts its workers.
  void OnStart(int node, const agent::NodePlace& place, TimePoint now);
  // A machine is lost that the attempt needs.
  void OnLost(TimePoint now) { lost_ = now; }
  // A connection breaks.
  void OnBreak();
  void OnWorkersGone(int node);
  // A machine stands still, so that it cannot know that the time of its workers is over.
  void OnFrozen(int node) { frozen_.insert(node); }
  // The worker of an attempt that fails by itself.
  void OnCulprit(int attempt, int rank) { culprits_[attempt] = rank; }
  bool HasCulprit(int attempt) const { return culprits_.contains(attempt); }
  void OnReport(int node, const agent::AttemptRecord& record);
  void OnEnd(int node, int exit_code, const std::string& text);
  void Violate(const std::string& what) { violations_.push_back(what); }

  const std::vector<std::string>& violations() const { return violations_; }
  const std::map<int, int>& exit_codes() const { return exit_codes_; }  // by node
  const std::map<int, int>& culprits() const { return culprits_; }      // rank by attempt
  // Returns whether a node has shown the report on an attempt. A node that loses its connection in
  // the last attempt may report the cause alone, because the coordinator ends without it.
  bool HasTold(int node, int attempt);
  // Longest time from the loss of a machine to the next start of workers.
  Duration longest_recovery() const { return longest_recovery_; }
  size_t attempts() const { return attempts_.size(); }

 private:
  struct Attempt {
    agent::NodePlace first;  // of the node that started first
    std::set<int> node_ranks = {};
  };

  bool has_only_workers_ = false;
  std::map<int, Attempt> attempts_;
  std::map<int, int> running_;  // attempt by node
  std::set<int> frozen_;
  std::map<int, int> culprits_;
  std::map<int, std::set<int>> reports_;
  std::map<int, int> exit_codes_;
  std::map<int, std::string> end_texts_;  // by node
  std::set<int> broken_;                  // attempts in which a connection broke
  std::optional<TimePoint> lost_;         // since the last start
  Duration longest_recovery_{};
  std::vector<std::string> violations_;
};

}  // namespace rankrun::cluster
