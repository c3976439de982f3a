// Random messages between random ranks. Every rank knows the whole plan, so it
// can check the data of each receive.

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/comm/async/message_ranks.h"

namespace rankrun::comm::shm {
namespace {

struct Planned {
  int from, to;
  uint64_t tag, seed;
  size_t bytes;
};

size_t RandomSize(std::mt19937_64& random) {
  uint64_t kind = random() % 100;
  if (kind < 70) return random() % 300;
  if (kind < 97) return random() % 20'000;
  return random() % 500'000;
}

std::vector<Planned> PlanOf(uint64_t seed, int ranks, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Planned> plan;
  auto n = static_cast<uint64_t>(ranks);
  for (size_t i = 0; i < count; ++i) {
    uint64_t from = random() % n, to = (from + 1 + random() % (n - 1)) % n;
    plan.push_back({.from = static_cast<int>(from),
                    .to = static_cast<int>(to),
                    .tag = random() % 3,
                    .seed = seed * 100'000 + i,
                    .bytes = RandomSize(random)});
  }
  return plan;
}

// Returns a rank's part of a plan in random order. Sends to one rank with one
// tag stay in order, and so do receives.
class Player {
 public:
  Player(MessageRank& me, const std::vector<Planned>& plan, uint64_t seed)
      : me_(me), random_(seed * 1000 + static_cast<uint64_t>(me.rank())) {
    for (const Planned& message : plan) {
      if (message.from == me.rank()) sends_.push_back(&message);
      if (message.to == me.rank()) receives_.push_back(&message);
    }
  }

  void Play() {
    while (!sends_.empty() || !receives_.empty()) {
      uint64_t kind = random_() % 10;
      if (kind < 4) Start(sends_);
      if (kind >= 4 && kind < 8) Start(receives_);
      if (kind == 8) EndOne();
      if (kind == 9) me_.messages().Move();
      if (under_way_.size() > 40) EndOne();
    }
    while (!under_way_.empty()) EndOne();
  }

 private:
  struct UnderWay {
    const Planned* message;
    std::string data;
    std::unique_ptr<Transfer> transfer;
    bool receives;
  };

  // The first operation of a random pair of ranks and tag.
  void Start(std::list<const Planned*>& from) {
    if (from.empty()) return;
    auto chosen =
        std::next(from.begin(), static_cast<long>(random_() % std::min<size_t>(from.size(), 8)));
    const Planned& like = **chosen;
    chosen = std::find_if(from.begin(), from.end(), [&](const Planned* other) {
      return other->tag == like.tag && other->from == like.from && other->to == like.to;
    });
    const Planned& message = **chosen;
    from.erase(chosen);
    UnderWay& started = under_way_.emplace_back(
        UnderWay{&message, Text(message.seed, message.bytes), nullptr, &from == &receives_});
    if (started.receives) {
      started.data.assign(message.bytes, '?');
      started.transfer = me_.StartRecv(started.data, message.from, message.tag);
    } else {
      started.transfer = me_.StartSend(started.data, message.to, message.tag);
    }
  }

  void EndOne() {
    if (under_way_.empty()) return;
    const auto chosen =
        std::next(under_way_.begin(), static_cast<long>(random_() % under_way_.size()));
    // The sender may not have started the message yet, because it may itself
    // wait for a message that this rank has not started.
    auto ok = chosen->transfer->Wait(std::chrono::milliseconds(random_() % 3));
    if (!ok && ok.error().code == ErrorCode::kTimeout) return;
    ASSERT_TRUE(ok) << ok.error().message;
    ASSERT_TRUE(chosen->data == Text(chosen->message->seed, chosen->message->bytes));
    if (chosen->receives) {
      ASSERT_EQ(chosen->transfer->source(), chosen->message->from);
    }
    under_way_.erase(chosen);
  }

  MessageRank& me_;
  std::mt19937_64 random_;
  std::list<const Planned*> sends_, receives_;
  std::list<UnderWay> under_way_;
};

TEST(ShmMessagesRandomTest, EveryReceiveGetsThePlannedMessage) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    int ranks = 2 + static_cast<int>(seed % 4);
    auto plan = PlanOf(seed, ranks, 800);
    RunMessageRanks(ranks, [&](MessageRank& me) { Player(me, plan, seed).Play(); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(ShmMessagesRandomTest, FromAnyoneEachMessageComesOnceAndEachSendersInOrder) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::vector<Planned> plan = PlanOf(seed, 4, 600);
    for (Planned& message : plan) {
      message.tag = 0;
      message.bytes = 64;
    }
    RunMessageRanks(4, [&](MessageRank& me) {
      std::vector<std::list<const Planned*>> wanted(4);
      for (const Planned& message : plan) {
        if (message.to == me.rank()) wanted[static_cast<size_t>(message.from)].push_back(&message);
      }
      for (const Planned& message : plan) {
        if (message.from == me.rank()) {
          ASSERT_TRUE(me.Send(Text(message.seed, 64), message.to));
        }
        if (message.to != me.rank()) continue;
        int source = -1;
        std::string got = me.Recv(64, std::nullopt, 0, &source);
        auto& from_it = wanted[static_cast<size_t>(source)];
        ASSERT_FALSE(from_it.empty());
        ASSERT_TRUE(got == Text(from_it.front()->seed, 64));
        from_it.pop_front();
      }
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rankrun::comm::shm
