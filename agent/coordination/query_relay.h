#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/relay.h"
#include "base/clock.h"

namespace rankrun::agent {

// The coordinator's part in the inspection of a job: passes the request of one node on to all
// others, and their answers back. Answers that come later than kTimeout, or the request's own
// limit, are dropped, and the nodes that owe them are named. Pure: no clock, no I/O.
class QueryRelay {
 public:
  static constexpr std::chrono::milliseconds kTimeout{1'000};
  static constexpr std::chrono::milliseconds kMaxTimeout{10'000};  // whatever a request says
  // Queries of a node under way; further ones are over at once. Slow ones, which may last longer
  // than kTimeout, have a limit of their own, so that they do not keep others out.
  static constexpr size_t kMaxQueriesOfNode = 4;
  static constexpr size_t kMaxSlowQueriesOfNode = 2;
  // All answers to a query together. With the most queries under way, a node that reads slowly
  // has less to read than the limit at which its connection counts as stuck.
  static constexpr size_t kMaxQueryBytes = size_t{3} << 20;

  struct Message {
    PeerId to;
    Relay relay;
  };
  using Messages = std::vector<Message>;

  // A node has joined, or its connection is lost.
  void Add(PeerId peer, std::string name) { names_[peer] = std::move(name); }
  Messages Remove(PeerId peer);
  // Returns nothing for a node that has not joined.
  std::string NameOf(PeerId peer) const {
    const auto found = names_.find(peer);
    return found == names_.end() ? "" : found->second;
  }

  Messages OnRelay(PeerId from, const Relay& relay, TimePoint now);
  Messages OnTick(TimePoint now);

  // Time of the next OnTick; none while no query is under way.
  std::optional<TimePoint> deadline() const;

 private:
  struct Query {
    PeerId asker;
    uint64_t asker_number;
    bool is_slow;
    size_t room;                       // bytes of one node's answer
    size_t left;                       // bytes of all answers that are still to come
    std::set<PeerId> open;             // nodes that have not answered
    std::vector<std::string> missing;  // nodes that never will
    TimePoint deadline;
  };

  size_t QueriesOf(PeerId asker, bool is_slow) const;
  void OnRequest(PeerId from, const Relay& relay, TimePoint now, Messages& out);
  void OnAnswer(PeerId from, const Relay& relay, Messages& out);
  void EndIfComplete(uint64_t number, Messages& out);

  std::map<PeerId, std::string> names_;
  std::map<uint64_t, Query> queries_;
  uint64_t last_number_ = 0;
};

}  // namespace rankrun::agent
