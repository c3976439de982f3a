#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "agent/coordination/liveness_watch.h"

// Properties of LivenessWatch in random histories of a few nodes.

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kNodes = 4;
constexpr int kSeeds = 2'000;

struct Peer {
  bool is_known = false;   // since its last hello, no trial was refused
  bool is_proven = false;  // likewise, a dial has connected
  TimePoint last_heard{};
  int refusals = 0;  // of dials since it was last heard
};

struct History {
  explicit History(unsigned seed) : random(seed) {}

  int Below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
  uint64_t AnyNode() { return 1 + random() % kNodes; }

  void Hear(uint64_t node) {
    peers[node].last_heard = now;
    peers[node].refusals = 0;
  }
  void Hello(uint64_t node) {
    Hear(node);
    peers[node].is_known = true;
    watch.OnHello(node, {"10.0.0.1", static_cast<uint16_t>(node)}, now);
  }
  void Dial() {
    for (const LivenessDial& dial : watch.Due(now)) open.push_back({dial, now});
  }
  void Answer(LivenessAnswer answer) {
    const auto [dial, began] = open.back();
    open.pop_back();
    Peer& peer = peers[dial.node];
    const bool is_trial = !peer.is_proven;
    peer.is_proven |= answer == LivenessAnswer::kConnected;
    const bool is_refused = answer == LivenessAnswer::kRefused;
    if (is_refused && is_trial) peer.is_known = false;
    if (is_refused && began >= peer.last_heard) peer.refusals += 1;
    const auto gone = watch.OnAnswer(dial.number, answer, now);
    if (!gone) return;
    EXPECT_EQ(gone->node, dial.node);
    EXPECT_TRUE(peer.is_proven);
    EXPECT_GE(peer.refusals, 2);
    peer = {};
    found.push_back(gone->node);
  }
  void Step() {
    constexpr LivenessAnswer kAnswers[] = {LivenessAnswer::kConnected, LivenessAnswer::kRefused,
                                           LivenessAnswer::kNone};
    const uint64_t node = AnyNode();
    now += milliseconds(Below(1'000));
    switch (Below(5)) {
      case 0:
        return Hello(node);
      case 1:
        Hear(node);
        return watch.OnMessage(node, now);
      case 2:
        return watch.OnBroken(node, now);
      case 3:
        return Dial();
      default:
        if (!open.empty()) Answer(kAnswers[Below(3)]);
    }
  }
  // Answers all dials of this time alike. Nodes are heard each second if they are `alive`.
  void Continue(Duration time, LivenessAnswer answer, bool alive) {
    for (const TimePoint end = now + time; now < end; now += milliseconds(500)) {
      for (uint64_t node = 1; alive && node <= kNodes; ++node) {
        Hear(node);
        watch.OnMessage(node, now);
      }
      Dial();
      while (!open.empty()) Answer(answer);
    }
  }

  std::mt19937 random;
  TimePoint now{std::chrono::hours(1)};
  LivenessWatch watch{seconds(10)};
  std::map<uint64_t, Peer> peers;
  std::vector<std::pair<LivenessDial, TimePoint>> open;
  std::vector<uint64_t> found;
};

TEST(LivenessPropertyTest, OnlyRefusalsOfAProvenPortSinceItWasHeardAreProof) {
  for (unsigned seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int i = 0; i < 200; ++i) history.Step();
  }
}

TEST(LivenessPropertyTest, ANodeWhoseTrialWasNotRefusedIsFoundWhenItIsKilledLater) {
  for (unsigned seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int i = 0; i < 50; ++i) history.Step();
    history.Continue(std::chrono::minutes(10), LivenessAnswer::kConnected, true);
    history.found.clear();
    std::vector<uint64_t> known;
    for (const auto& [node, peer] : history.peers) {
      if (peer.is_known) known.push_back(node);
    }
    history.Continue(seconds(30), LivenessAnswer::kRefused, false);
    std::ranges::sort(history.found);
    EXPECT_TRUE(std::ranges::includes(history.found, known));
  }
}

// As the edge does with a node that has left.
TEST(LivenessPropertyTest, NodesThatAreForgottenAtTheirNextDialAreAllForgotten) {
  for (unsigned seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int i = 0; i < 50; ++i) history.Step();
    while (!history.open.empty()) history.Answer(LivenessAnswer::kNone);
    const TimePoint end = history.now + std::chrono::minutes(10);
    for (auto next = history.watch.deadline(); next && *next < end;
         next = history.watch.deadline()) {
      history.now = std::max(history.now, *next);
      for (const LivenessDial& dial : history.watch.Due(history.now)) {
        history.watch.Forget(dial.node);
        history.watch.OnAnswer(dial.number, LivenessAnswer::kNone, history.now);
      }
    }
    EXPECT_FALSE(history.watch.deadline());
  }
}

}  // namespace
}  // namespace rankrun::agent
