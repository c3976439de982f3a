#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/coordination/round.h"
#include "agent/job/decision.h"

namespace rankrun::agent {

// A round from its proposal until nothing of it is left: its nodes, the answers that are to come,
// and the messages that carry its facts. Pure.
class RoundInProgress {
 public:
  struct Participant {
    int node_rank = 0;
    bool is_awaited = false;                     // must answer before the phase can end
    std::optional<std::vector<int>> unfinished;  // local ranks; empty: all
    std::vector<std::string> own_addresses;      // from its Prepared
  };

  RoundInProgress() = default;  // a round without nodes
  // `store_addresses`: those of the first node's hello.
  RoundInProgress(int number, std::vector<NodeAssignment> assignments,
                  std::vector<std::string> store_addresses);

  int number() const { return number_; }
  // All nodes with which the round began.
  const std::vector<NodeAssignment>& assignments() const { return assignments_; }
  // Those that have not been removed, by node id.
  const std::map<uint64_t, Participant>& participants() const { return participants_; }
  bool Contains(uint64_t node) const { return participants_.contains(node); }
  const NodeAssignment& AssignmentOf(uint64_t node) const;
  // Returns the name of a node with which the round began; empty: it is none.
  std::string NameOf(uint64_t node) const;
  bool IsStoreHost(uint64_t node) const { return participants_.at(node).node_rank == 0; }

  // Removes a node that is lost or has left. Returns whether its answer was awaited.
  bool Remove(uint64_t node);
  void RemoveAll();

  void AwaitAll();
  // Returns whether the answer was awaited.
  bool RecordAnswer(uint64_t node);
  bool IsAwaited(uint64_t node) const;
  int awaited() const { return awaited_; }  // number of answers

  void RecordPrepared(uint64_t node, const Prepared& message);
  void RecordUnfinished(uint64_t node, const std::vector<int>& local_ranks);

  // Returns the message without the attempt and the restarts.
  Prepare PrepareFor(uint64_t node) const;
  // Only the store's host gets the allowlist.
  StartRound StartRoundFor(uint64_t node) const;

  events::RoundFormed AsEvent() const;
  // Returns "ranks 4-7 on n2, n3; nothing visible shows whether they wait for ranks 0-3, which
  // ended with exit code 0": the nodes whose answers are awaited, with the ranks that they have not
  // reported as finished, and the ranks that have.
  std::string UnfinishedText() const;

 private:
  void OfferFurtherAddresses(const std::vector<std::string>& own);
  std::vector<int> RanksOn(uint64_t node, bool are_finished) const;
  std::string UnfinishedRanksOn(uint64_t node) const;

  int number_ = 0;
  std::vector<NodeAssignment> assignments_;
  std::map<uint64_t, Participant> participants_;
  int awaited_ = 0;   // participants with is_awaited
  Prepare prepare_;   // without the fields that differ between nodes
  StartRound start_;  // without the allowlist
};

}  // namespace rankrun::agent
