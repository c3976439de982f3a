#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/coordination/health_message.h"
#include "agent/health/hang_watch.h"
#include "agent/nodes/health_codec.h"
#include "base/clock.h"

namespace rankrun::agent {

// The coordinator's part of the monitored barrier: collects the samples of all nodes and judges
// them when each node has sent new ones, so that a message costs the same however many there are.
// Has the stacks of all workers compared before a verdict that needs them. Nothing is sent while
// nobody waits. Pure.
class JobHealth {
 public:
  explicit JobHealth(HangPolicy policy);

  // The workers of this round are being started.
  void BeginRound(int round, TimePoint now);

  // Returns the messages that all nodes are to get. Ignores samples of an earlier round.
  std::vector<HealthOrder> OnSamples(uint64_t node, int round, NodeSamples samples, TimePoint now);
  // Takes the digests of the stacks of a node's workers.
  std::vector<HealthOrder> OnStacks(uint64_t node, int round,
                                    const std::vector<RankDigest>& digests);
  void Forget(uint64_t node);

  // Returns the ranks that have ended and for which others wait, by the samples of this moment:
  // "rank 0 ended with exit code 0 while rank 4 waits for key done of the store"; empty: none seen.
  std::string AwaitedEnd(TimePoint now) const;

  // Stacks that come later than kStacksTimeout are not waited for.
  static constexpr std::chrono::seconds kStacksTimeout{3};
  // Time of the next OnTick; none while no stacks are awaited.
  std::optional<TimePoint> deadline() const;
  std::vector<HealthOrder> OnTick(TimePoint now);

 private:
  struct Node {
    NodeSamples samples;
    TimePoint received;
    bool is_new = true;  // since the last look
  };

  // A verdict that needs stacks, until the stacks of all running workers are there.
  struct Comparison {
    HangVerdict verdict;
    std::map<uint64_t, std::set<int>> awaited;  // ranks, by their node
    std::vector<RankDigest> digests{};
    TimePoint deadline;
  };

  void Keep(uint64_t node, NodeSamples samples, TimePoint now);
  bool IsTimeToLook(TimePoint now) const;
  std::optional<std::vector<WorkerSample>> AllWorkers(TimePoint now) const;
  void Judge(TimePoint now, std::vector<HealthOrder>& orders);
  std::map<uint64_t, std::set<int>> RunningRanks() const;
  void Conclude(HangVerdict verdict, TimePoint now, std::vector<HealthOrder>& orders);
  HangFound FoundBy(const HangVerdict& verdict) const;

  HangWatch watch_;
  std::optional<Comparison> comparison_;
  int round_ = 0;
  std::map<uint64_t, Node> nodes_;
  size_t new_nodes_ = 0;                       // of nodes_
  std::optional<TimePoint> looked_at_;         // also when samples were missing
  std::optional<TimePoint> wanted_at_;         // the last time that samples were asked for
  std::optional<TimePoint> incomplete_since_;  // samples of some workers are missing
};

}  // namespace rankrun::agent
