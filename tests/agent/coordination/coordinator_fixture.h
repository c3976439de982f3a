#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "agent/coordination/coordinator.h"

namespace rankrun::agent {

// A coordinator and the messages that it sends to nodes 1, 2, ... Node n
// connects as peer n, and reconnects as another peer.
class CoordinatorTest : public testing::Test {
 protected:
  void Open(int min, int max, std::optional<CoordinatorRecord> earlier = {}) {
    policy_.min_nodes = min;
    policy_.max_nodes = max;
    policy_.own_node = 1;
    coordinator_.emplace(policy_, std::move(earlier), now_);
    Act(Tick{});
  }

  void Act(const CoordinatorEvent& event) {
    for (const CoordinatorAction& action : coordinator_->Step(event, now_)) {
      if (const auto* send = std::get_if<SendMessage>(&action))
        sent_[send->peer].push_back(send->message);
      if (const auto* persist = std::get_if<PersistRecord>(&action)) persisted_ = persist->record;
      if (const auto* hang_up = std::get_if<HangUp>(&action)) hung_up_.push_back(hang_up->peer);
      has_retired_ |= std::holds_alternative<Retire>(action);
      if (const auto* said = std::get_if<Announcement>(&action)) announced_.push_back(*said);
    }
  }
  void Advance(Duration time) {
    now_ += time;
    Act(Tick{});
  }
  Hello HelloOf(uint64_t node) const {
    return {.node = node,
            .name = "n" + std::to_string(node),
            .slots = 2,
            .min_nodes = policy_.min_nodes,
            .max_nodes = policy_.max_nodes};
  }
  void Deliver(PeerId peer, MemberMessage message) {
    Act(MessageFromPeer{peer, std::move(message)});
  }
  void Join(uint64_t node) { Deliver(node, HelloOf(node)); }
  // A hello on another connection, of the same or the next agent.
  void Reconnect(uint64_t node, PeerId peer, int incarnation, NodeState work, int round) {
    Hello hello = HelloOf(node);
    hello.incarnation = incarnation;
    hello.work = work;
    hello.round = round;
    Deliver(peer, hello);
  }
  void AllBeat(std::vector<PeerId> peers) {
    for (PeerId peer : peers) Deliver(peer, Beat{1});
  }
  // Starts a round of nodes 1 to `nodes`.
  void Run(int nodes, int min = 0) {
    Open(min > 0 ? min : nodes, nodes);
    for (int node = 1; node <= nodes; ++node) Join(static_cast<uint64_t>(node));
    for (int node = 1; node <= nodes; ++node) Deliver(static_cast<uint64_t>(node), Prepared{1, 5});
    ASSERT_EQ(coordinator_->phase(), JobPhase::kRunning);
  }

  // The last message of type T that was sent to the peer.
  template <typename T>
  const T* SentTo(PeerId peer) {
    const T* last = nullptr;
    for (const CoordinatorMessage& message : sent_[peer]) {
      if (const auto* found = std::get_if<T>(&message)) last = found;
    }
    return last;
  }
  JobPhase phase() const { return coordinator_->phase(); }

  TimePoint now_{std::chrono::hours(1)};
  CoordinatorPolicy policy_;
  std::optional<Coordinator> coordinator_;
  std::map<PeerId, std::vector<CoordinatorMessage>> sent_;
  std::vector<PeerId> hung_up_;
  std::optional<CoordinatorRecord> persisted_;
  std::vector<Announcement> announced_;
  bool has_retired_ = false;
};

}  // namespace rankrun::agent
